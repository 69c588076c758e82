// Typesets the formulas, divides what does not fit on a slide into sub-slides, and starts reveal.js.
const WIDTH = 1280, HEIGHT = 720, ROOM = 670  // pixels; the number of the slide stands below the room

// What may be moved to another slide: paragraphs, lists, tables, code with its output, figures.
function blocks(section) {
  const found = []
  for (const cell of section.querySelectorAll(".jp-Cell")) {
    const text = cell.querySelector(".jp-RenderedMarkdown")
    if (text && cell.classList.contains("jp-MarkdownCell")) found.push(...text.children)
    else if (cell.querySelector(".jp-RenderedImage") || cell.offsetHeight > ROOM - 80) found.push(...cell.querySelectorAll(".highlight, .jp-OutputArea-output"))
    else found.push(cell)  // code and what it prints stay together
  }
  return found
}

function slide(stack, heading, first) {
  const made = stack.appendChild(document.createElement("section"))
  if (!heading) return made
  const title = made.appendChild(heading.cloneNode(true))
  title.removeAttribute("id")
  title.classList.toggle("again", !first)
  return made
}

// As large as a slide allows; what is left below a wide figure is for the text that follows.
function fit(image) {
  const width = Math.min(1168, 590 * image.naturalWidth / image.naturalHeight)
  image.width = width
  image.height = width * image.naturalHeight / image.naturalWidth
}

const isFigure = block => block.classList.contains("jp-RenderedImage")
const isHeading = block => /^H[1-6]$/.test(block.tagName)

// The blocks of one slide of the notebook, in as many sub-slides as they need.
function divide(stack) {
  const sections = [...stack.children], parts = sections.map(blocks)
  let heading = parts.flat().find(block => block.tagName === "H2")
  stack.replaceChildren()
  let first = true
  for (const part of parts) {
    const own = heading ? part.filter(block => block !== heading) : part
    let here = null
    const empty = () => here.children.length === (heading ? 1 : 0)
    const next = () => { here = slide(stack, heading, first); first = false }
    if (!own.length) continue
    next()
    for (const block of own) {
      if (isFigure(block)) {
        if (!empty()) next()
        fit(block.querySelector("img"))
      }
      const pieces = block.matches("ul, ol") ? [...block.children] : [block]
      let list = null, number = block.start || 1
      for (const piece of pieces) {
        if (piece !== block && !list) {
          list = here.appendChild(block.cloneNode(false))
          if (block.tagName === "OL") list.start = number
        }
        (list || here).append(piece)
        number += 1
        const alone = here.children.length === (heading ? 2 : 1) && (!list || list.children.length === 1)
        if (!isFigure(block) && here.scrollHeight > ROOM && !alone) {
          const taken = [piece]
          const before = list ? null : here.children[here.children.length - 2]
          if (before && isHeading(before) && before !== here.firstChild) taken.unshift(before)
          const old = list
          next()
          if (list) {
            list = here.appendChild(block.cloneNode(false))
            if (block.tagName === "OL") list.start = number - 1
            if (!old.children.length) old.remove()
          }
          (list || here).append(...taken)
        }
      }
    }
  }
  for (const section of stack.children) {  // one block that is too tall by itself: smaller letters
    for (let scale = 1; section.scrollHeight > ROOM && scale > 0.4; scale -= 0.05) section.style.setProperty("--scale", scale)
  }
}

async function start() {
  const slides = document.querySelector(".slides")
  await MathJax.startup.promise
  await MathJax.typesetPromise([slides])
  await Promise.all([...document.images].map(image => image.decode().catch(() => {})))
  document.body.classList.add("measuring")
  const stacks = [...slides.children]
  stacks.forEach(stack => stack.classList.add("stack", "apart"))
  for (const stack of stacks) {
    stack.classList.remove("apart")
    divide(stack)
    stack.classList.add("apart")
  }
  stacks.forEach(stack => {
    stack.classList.remove("apart")
    if (!stack.children.length) stack.remove()
    else if (stack.children.length === 1) stack.replaceWith(stack.firstChild)
  })
  document.body.classList.remove("measuring")
  await Reveal.initialize({width: WIDTH, height: HEIGHT, margin: 0.02, center: false, hash: true, transition: "none",
    slideNumber: "c/t", navigationMode: "linear"})
  document.documentElement.dataset.ready = "yes"
}

addEventListener("DOMContentLoaded", start)
