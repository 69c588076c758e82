"use strict";
// The page of cora_nb shows the replies of models to variants of questions. It uses no library and sends no request.
// Every text of a model, a question or a file is written through textContent only.

const RIGHT = 0, WRONG = 1, UNPARSED = 2, CUT_OFF = 3, FAILED = 4, NOT_ASKED = 5, NONE = 9;
const NOT_RIGHT = [WRONG, UNPARSED, CUT_OFF];
const WORDS = ["right", "wrong", "unparsed", "cut off", "failed", "not asked"];
const LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
const TEXT_MARK = 0xe000, CHOICE_MARK = 0xe100;
const $ = (id) => document.getElementById(id);

function el(tag, given, ...inside) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(given || {})) {
    if (name === "class") node.className = value;
    else if (name === "on") for (const [event, act] of Object.entries(value)) node.addEventListener(event, act);
    else if (name in node && name !== "list") node[name] = value;
    else node.setAttribute(name, value);
  }
  for (const piece of inside) node.append(piece);  // a text becomes a text node
  return node;
}

// ---------------------------------------------------------------- the data

async function unpack(base64) {
  const bytes = Uint8Array.from(atob(base64.trim()), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}

// One run, with its replies by question and slot (a slot is a method, with the words for it, and an index). The map shows the first repetition.
function indexed(run, nQuestions, nSlots) {
  const cells = new Int32Array(nQuestions * nSlots).fill(-1);
  const more = new Map();  // cell -> further repetitions
  for (let i = 0; i < run.rows; i++) {
    const cell = run.q[i] * nSlots + run.s[i];
    const first = cells[cell];
    if (first < 0) cells[cell] = i;
    else if (run.t && run.t[i] < run.t[first]) { cells[cell] = i; more.set(cell, [first, ...(more.get(cell) || [])]); }
    else more.set(cell, [...(more.get(cell) || []), i]);
  }
  const tried = new Int32Array(nQuestions), hits = new Int32Array(nQuestions), left = new Int32Array(nQuestions);
  for (let q = 0; q < nQuestions; q++) {
    for (let s = 0; s < nSlots; s++) {
      const i = cells[q * nSlots + s];
      if (i >= 0 && run.o[i] === "5") left[q] += 1;
      if (i < 0 || run.o[i] === "5") continue;
      tried[q] += 1;
      hits[q] += run.o[i] === "0";
    }
  }
  return Object.assign(run, { cells, more, tried, hits, left });
}

const outcome = (run, q, s) => {
  const i = run.cells[q * data.slots.length + s];
  return i < 0 ? NONE : +run.o[i];
};
const consistency = (run, q) => (run.tried[q] ? run.hits[q] / run.tried[q] : NaN);

let data, runs, original;  // all there is; its runs; the slot of the question as it stands, or -1
const state = { runs: [0], sort: "file", picked: [], at: -1, open: -1, cell: 12, differ: false };

// ---------------------------------------------------------------- which questions

function kinds() {  // the filters of the list: words, and a function that selects questions
  const any = (q, outcomes) => state.runs.some((r) => data.slots.some((_, s) => outcomes.includes(outcome(runs[r], q, s))));
  const asked = (q) => state.runs.filter((r) => runs[r].tried[q] > 0);
  const rightAsItStands = (q, r) => original >= 0 && outcome(runs[r], q, original) === RIGHT;
  return {
    all: ["all questions", () => true],
    inconsistent: ["right as it stands, wrong on a variant",
      (q) => state.runs.some((r) => rightAsItStands(q, r) && data.slots.some((_, s) => NOT_RIGHT.includes(outcome(runs[r], q, s))))],
    always: ["right on every variant", (q) => asked(q).length > 0 && asked(q).every((r) => runs[r].hits[q] === runs[r].tried[q] && !runs[r].left[q])],
    never: ["never right when asked", (q) => asked(q).length > 0 && asked(q).every((r) => runs[r].hits[q] === 0)],
    unparsed: ["with replies that cannot be read", (q) => any(q, [UNPARSED, CUT_OFF])],
    failed: ["with failed prompts", (q) => any(q, [FAILED])],
    differ: ["where the runs differ", (q) => data.slots.some((_, s) => differs(q, s))],
  };
}

function differs(q, s) {  // whether the runs shown were not all right, or all not
  const seen = state.runs.map((r) => outcome(runs[r], q, s)).filter((o) => o !== NONE && o !== NOT_ASKED);
  return seen.some((o) => (o === RIGHT) !== (seen[0] === RIGHT));
}

function matches(words) {  // whether a text of the question, or of a reply to it, holds the words
  if (!words) return () => true;
  const low = words.toLowerCase(), has = (text) => (text || "").toLowerCase().includes(low);
  const texts = new Set();
  data.texts.forEach((text, code) => { if (has(text)) texts.add(code); });
  const said = new Set();
  if (texts.size) {
    for (const run of state.runs.map((r) => runs[r])) {
      for (let i = 0; run.r && i < run.rows; i++) if (texts.has(run.r[i])) said.add(run.q[i]);
    }
  }
  const Q = data.questions;
  return (q) => said.has(q) || has(Q.id[q]) || has(Q.text[q]) || Q.choices[q].some(has);
}

const SORTS = {
  file: ["as in the file", () => 0],
  consistency: ["least consistent first", (a, b) => low(a) - low(b)],
  difficulty: ["hardest first, over all runs", (a, b) => mean(a) - mean(b)],
  subject: ["by subject", (a, b) => compare(data.questions.subject[a], data.questions.subject[b])],
};
const compare = (a, b) => String(a ?? "").localeCompare(String(b ?? ""));
const known = (x) => (Number.isNaN(x) ? 2 : x);  // questions that were not asked come last
const low = (q) => known(consistency(runs[state.runs[0]], q));
const mean = (q) => {
  const shares = runs.map((run) => consistency(run, q)).filter((x) => !Number.isNaN(x));
  return known(shares.reduce((a, b) => a + b, 0) / shares.length);
};

function pick() {  // narrow and sort, then draw
  const [, belongs] = kinds()[$("kind").value], holds = matches($("search").value.trim());
  const subject = $("subject").value, method = $("method").value;
  const slots = data.slots.map((slot, s) => (slot.method === method ? s : -1)).filter((s) => s >= 0);
  const fails = (q) => slots.some((s) => state.runs.some((r) => [WRONG, UNPARSED, CUT_OFF, FAILED].includes(outcome(runs[r], q, s))));
  const found = [];
  for (let q = 0; q < data.questions.id.length; q++) {
    if (subject && String(data.questions.subject[q] ?? "") !== subject) continue;
    if (method && !fails(q)) continue;
    if (belongs(q) && holds(q)) found.push(q);
  }
  const order = SORTS[state.sort][1], marked = state.picked[state.at];
  state.picked = found.sort((a, b) => order(a, b) || a - b);
  state.at = state.picked.indexOf(marked);
  const all = data.questions.id.length;
  $("count").textContent = found.length === all ? `${all} questions` : `${found.length} of ${all} questions`;
  listQuestions();
  layout();
}

// ---------------------------------------------------------------- the map

const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
let colours = {};
const NAMES = ["--right", "--wrong", "--unparsed", "--cut-off", "--failed", "--not-asked", "--text", "--line", "--accent", "--paper"];

function readColours() {
  colours = Object.fromEntries(NAMES.map((name) => [name.slice(2), css(name)]));
  colours.cells = NAMES.slice(0, 6).map(css);
}

const blockWidth = () => data.slots.length * state.cell;
const gap = 14;
const left = 46;  // room for the bar of consistency

function layout() {
  const box = $("map-scroll"), n = state.picked.length;
  $("map-space").style.height = `${Math.max(n * state.cell, 1)}px`;
  const width = left + state.runs.length * (blockWidth() + gap);
  $("map-space").style.width = `${width}px`;
  box.style.height = `${Math.min(n * state.cell + 2, 0.7 * innerHeight, 640)}px`;
  drawHead(width);
  draw();
}

function canvasOf(id, width, height) {
  const canvas = $(id), ratio = devicePixelRatio || 1;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  return context;
}

function methodsInOrder() {  // [words, first slot, number of slots]
  const found = [];
  data.slots.forEach((slot, s) => {
    if (found.length && data.slots[s - 1].method === slot.method) found[found.length - 1][2] += 1;
    else found.push([slot.words, s, 1]);
  });
  return found;
}

const SLANT = Math.PI / 3, LONGEST = 240;  // of the columns' labels; their length in pixels

function columnLabels() {  // [words, middle in cells]; "the same" for what the label on the left says already
  const wide = methodsInOrder().filter(([, , count]) => count * state.cell >= 9);
  return wide.map(([words, first, count], k) => {
    const before = k ? wide[k - 1][0] : words;
    return [words.startsWith(`${before}, `) ? `the same${words.slice(before.length)}` : words, first + count / 2];
  });
}

function drawHead(width) {
  const measured = canvasOf("map-head", 1, 1);
  measured.font = "11px system-ui, sans-serif";
  const labels = columnLabels().map(([words, middle]) => [shorten(measured, words, LONGEST), middle]);
  const room = Math.max(...labels.map(([words]) => measured.measureText(words).width), 40);
  const wide = Math.max(width + room * Math.cos(SLANT) + 10, 10), high = Math.ceil(room * Math.sin(SLANT)) + 26;
  const context = canvasOf("map-head", wide, high);
  context.fillStyle = colours.text;
  state.runs.forEach((r, k) => {
    const x0 = left + k * (blockWidth() + gap);
    context.font = "600 13px system-ui, sans-serif";
    context.fillText(shorten(context, runs[r].name, Math.max(blockWidth() + gap, 90)), x0, 13);
    context.font = "11px system-ui, sans-serif";
    for (const [words, middle] of labels) {
      context.save();
      context.translate(x0 + middle * state.cell + 3, high - 5);
      context.rotate(-SLANT);
      context.fillText(words, 0, 0);
      context.restore();
    }
  });
}

function shorten(context, text, room) {
  if (context.measureText(text).width <= room) return text;
  while (text && context.measureText(`${text}…`).width > room) text = text.slice(0, -1);
  return `${text}…`;
}

function draw() {
  const box = $("map-scroll"), size = state.cell, wide = box.clientWidth, high = box.clientHeight;
  const context = canvasOf("map", Math.max(wide, 1), Math.max(high, 1));
  const first = Math.floor(box.scrollTop / size), last = Math.min(state.picked.length, Math.ceil((box.scrollTop + high) / size));
  const shift = -box.scrollLeft, bare = size < 7;
  $("map-head").style.transform = `translateX(${shift}px)`;
  for (let row = first; row < last; row++) {
    const q = state.picked[row], y = row * size - box.scrollTop;
    const share = consistency(runs[state.runs[0]], q);
    context.fillStyle = colours.line;
    context.fillRect(shift, y + 1, left - 10, Math.max(size - 2, 1));
    context.fillStyle = colours.text;
    context.fillRect(shift, y + 1, (left - 10) * (share || 0), Math.max(size - 2, 1));
    state.runs.forEach((r, k) => {
      const x0 = shift + left + k * (blockWidth() + gap);
      for (let s = 0; s < data.slots.length; s++) {
        const o = outcome(runs[r], q, s);
        if (o === NONE) continue;
        drawCell(context, x0 + s * size, y, size, o, bare);
        if (state.differ && !bare && differs(q, s)) {
          context.strokeStyle = colours.accent;
          context.lineWidth = 2;
          context.strokeRect(x0 + s * size + 1, y + 1, size - 3, size - 3);
        }
      }
    });
    if (row === state.at) {
      context.strokeStyle = colours.accent;
      context.lineWidth = 2;
      context.strokeRect(shift + 1, y + 0.5, left + state.runs.length * (blockWidth() + gap) - gap, size - 1);
    }
  }
}

// Right is pale, wrong is dark, and the others have marks, so they can be told apart without colour.
function drawCell(context, x, y, size, o, bare) {
  const side = bare ? size : size - 1;
  context.fillStyle = colours.cells[o];
  context.fillRect(x, y, side, side);
  if (bare || o === RIGHT || o === WRONG) return;
  context.strokeStyle = context.fillStyle = colours.text;
  context.lineWidth = 1.2;
  const a = side * 0.25, b = side * 0.75;
  context.beginPath();
  if (o === UNPARSED) { context.moveTo(x + a, y + b); context.lineTo(x + b, y + a); }
  if (o === CUT_OFF) { context.moveTo(x + a, y + side / 2); context.lineTo(x + b, y + side / 2); }
  if (o === FAILED) {
    context.strokeStyle = colours.paper;
    context.moveTo(x + a, y + a); context.lineTo(x + b, y + b);
    context.moveTo(x + a, y + b); context.lineTo(x + b, y + a);
  }
  if (o === NOT_ASKED) context.rect(x + side / 2 - 0.5, y + side / 2 - 0.5, 1, 1);
  context.stroke();
}

function under(event) {  // the cell under the pointer: [row, run, slot]
  const box = $("map-scroll"), frame = box.getBoundingClientRect();
  const row = Math.floor((event.clientY - frame.top + box.scrollTop) / state.cell);
  const x = event.clientX - frame.left + box.scrollLeft - left, block = blockWidth() + gap;
  const k = Math.floor(x / block), s = Math.floor((x - k * block) / state.cell);
  if (row < 0 || row >= state.picked.length) return null;
  return [row, x >= 0 && k < state.runs.length && s < data.slots.length ? state.runs[k] : -1, s];
}

function describe(row, r, s) {
  const q = state.picked[row];
  const told = state.runs.map((k) => `${runs[k].name} ${runs[k].hits[q]} of ${runs[k].tried[q]} right`).join(", ");
  const cell = r < 0 || outcome(runs[r], q, s) === NONE ? "" : `; ${slotName(s)}: ${WORDS[outcome(runs[r], q, s)]}`;
  return `${data.questions.id[q]}: ${told}${cell}`;
}

const slotName = (s) => {
  const { method, index, words } = data.slots[s], alone = data.slots.filter((slot) => slot.method === method).length === 1;
  return alone ? words : `${words} (${index + 1})`;
};

function move(to) {
  if (!state.picked.length) return;
  state.at = Math.max(0, Math.min(state.picked.length - 1, to));
  const box = $("map-scroll"), y = state.at * state.cell;
  if (y < box.scrollTop) box.scrollTop = y;
  if (y + state.cell > box.scrollTop + box.clientHeight) box.scrollTop = y + state.cell - box.clientHeight;
  $("map-said").textContent = describe(state.at, -1, 0);
  draw();
}

// ---------------------------------------------------------------- the list, which a screen reader reads

let listed = 20;

function listQuestions() {
  const body = $("list-body");
  body.replaceChildren(...state.picked.slice(0, listed).map((q) => {
    const link = el("a", { href: address(q) }, data.questions.id[q]);
    const shares = state.runs.map((r) => el("td", { class: "number" }, `${runs[r].hits[q]} of ${runs[r].tried[q]}`));
    return el("tr", {}, el("th", { scope: "row" }, link), ...shares, el("td", { class: "clip", dir: "auto" }, data.questions.text[q]));
  }));
  $("list-head").replaceChildren(
    el("th", { scope: "col" }, "question"),
    ...state.runs.map((r) => el("th", { scope: "col" }, runs[r].name)),
    el("th", { scope: "col" }, "text"),
  );
  $("more").hidden = state.picked.length <= listed;
  $("more").textContent = `show ${Math.min(200, state.picked.length - listed)} more`;
}

// ---------------------------------------------------------------- one question

const address = (q) => `#q=${encodeURIComponent(data.questions.id[q])}`;

function shownTexts(run, i) {  // the texts of the choices shown in a row
  const q = run.q[i], Q = data.questions, sources = run.src && run.src[i] >= 0 ? data.sources[run.src[i]] : null;
  if (!sources || !Q.choices[q].length) return null;
  const fresh = run.new[i] < 0 ? [] : [...data.new[run.new[i]]];  // in the order shown
  return sources.map((source) => (source >= 0 ? Q.choices[q][source] : fresh.shift() ?? "?"));
}

function promptText(run, i) {
  const shown = shownTexts(run, i);
  if (run.w[i] < 0 || !shown) return null;
  const text = i in run.asked ? data.texts[run.asked[i]] : data.questions.text[run.q[i]];
  return Array.from(data.patterns[run.w[i]], (c) => {
    const code = c.codePointAt(0);
    if (code === TEXT_MARK) return text;
    return code >= CHOICE_MARK && code < CHOICE_MARK + shown.length ? shown[code - CHOICE_MARK] : c;
  }).join("");
}

function promptTitle(run) {
  if (!run.whole) return "question and choices as shown (the words around them are not known)";
  return run.shots ? `prompt, without its ${run.shots} examples` : "prompt";
}

function readAs(run, i) {  // the choice that was read, in words
  const shown = shownTexts(run, i);
  if (run.sel && run.sel[i] >= 0 && data.sources[run.sel[i]].length) return data.sources[run.sel[i]].map((p) => LETTERS[p]).join(", ");
  if (run.p[i] < 0) return WORDS[+run.o[i]];
  return `${LETTERS[run.p[i]] ?? run.p[i] + 1}${shown ? ` (${shown[run.p[i]]})` : ""}`;
}

function chosen(run, i) {  // the picked choice of the question, at any place; null if none
  if (i < 0 || run.p[i] < 0 || !run.src || run.src[i] < 0) return null;
  return data.sources[run.src[i]][run.p[i]];
}

function flipped(run, q, i) {  // whether another choice was picked than on the question as it stands
  if (original < 0) return false;
  const first = chosen(run, run.cells[q * data.slots.length + original]), here = chosen(run, i);
  return first !== null && here !== null && first !== here && here >= 0 && data.sources[run.src[i]].includes(first);
}

function scoreBars(run, i) {
  const scores = run.sc && run.sc[i];
  if (!scores) return "";
  const top = Math.max(...scores.filter((x) => x !== null)), shares = scores.map((x) => (x === null ? 0 : Math.exp(x - top)));
  const sum = shares.reduce((a, b) => a + b, 0);
  return el("div", { class: "bars", role: "list", "aria-label": "how the choices scored" }, ...scores.map((x, k) => {
    const bar = el("span", { class: `bar${k === run.p[i] ? " read" : ""}` });
    bar.style.width = `${(100 * shares[k]) / sum}%`;
    const words = `${LETTERS[k]} ${x === null ? "not known" : x.toFixed(2)}`;
    return el("div", { role: "listitem" }, el("span", { class: "bar-name" }, words), el("span", { class: "bar-room" }, bar));
  }));
}

function replyBox(run, i, several) {
  const o = +run.o[i], said = run.r && run.r[i] >= 0 ? data.texts[run.r[i]] : null;
  const about = [`read: ${readAs(run, i)}`, `right: ${LETTERS[run.a[i]] ?? "?"}`];
  if (run.t && run.t[i]) about.unshift(`repetition ${run.t[i] + 1}`);
  if (run.fin && run.fin[i] >= 0) about.push(`ended: ${data.texts[run.fin[i]]}`);
  if (run.conf && run.conf[i] !== null) about.push(`confidence: ${run.conf[i]}`);
  const box = el("div", { class: "reply" });
  if (several) box.append(el("h5", {}, run.name));
  box.append(el("p", { class: "about" }, el("span", { class: `tag o${o}` }, WORDS[o]), ` ${about.join(" · ")}`));
  if (said !== null) box.append(el("pre", { dir: "auto", tabIndex: 0, "aria-label": "reply" }, said));
  else if (o < FAILED && !(run.sc && run.sc[i])) box.append(el("p", { class: "about" }, "(the text of this reply is not in the file)"));
  if (run.err && run.err[i] >= 0) box.append(el("p", { class: "error" }, data.texts[run.err[i]]));
  box.append(scoreBars(run, i));
  return box;
}

function variantBox(q, s, several) {
  const with_ = state.runs.map((r) => [runs[r], runs[r].cells[q * data.slots.length + s]]).filter(([, i]) => i >= 0);
  if (!with_.length) return null;
  const flips = with_.filter(([run, i]) => flipped(run, q, i)).map(([run]) => run.name);
  const title = el("summary", {}, el("h4", {}, slotName(s)));
  for (const [run, i] of with_) title.append(el("span", { class: `tag o${run.o[i]}` }, several ? `${run.name}: ${WORDS[+run.o[i]]}` : WORDS[+run.o[i]]));
  if (flips.length) title.append(el("span", { class: "tag flip" }, several ? `flips: ${flips.join(", ")}` : "flips"));
  const box = el("details", { class: "variant" }, title);
  box.addEventListener("toggle", () => {
    if (!box.open || box.childElementCount > 1) return;  // filled when it is first opened
    let before = null;
    for (const [one, k] of with_) {
      const prompt = promptText(one, k);
      if (prompt !== null && prompt !== before) {
        box.append(el("h5", {}, promptTitle(one)), el("pre", { dir: "auto", class: "prompt", tabIndex: 0, "aria-label": "prompt" }, prompt));
        before = prompt;
      }
      box.append(replyBox(one, k, several));
      for (const further of one.more.get(q * data.slots.length + s) || []) box.append(replyBox(one, further, several));
    }
  });
  return box;
}

function showQuestion(q) {
  const Q = data.questions, several = state.runs.length > 1, box = $("question-body");
  $("question").hidden = false;
  $("question-title").textContent = `Question ${Q.id[q]}`;
  const choices = Q.choices[q].map((text, k) => el("li", k === Q.answer[q] ? { class: "answer" } : {}, el("bdi", {}, text), k === Q.answer[q] ? " (right)" : ""));
  const shares = state.runs.map((r) => `${runs[r].name}: right on ${runs[r].hits[q]} of ${runs[r].tried[q]}`).join("; ");
  const variants = data.slots.map((_, s) => variantBox(q, s, several)).filter(Boolean);
  box.replaceChildren(
    el("p", { class: "about" }, [Q.subject[q], shares].filter(Boolean).join(" · ")),
    el("p", { class: "asked", dir: "auto" }, Q.text[q] || "(the text of this question is not in the file)"),
    el("ol", { class: "choices" }, ...choices),
    ...variants,
  );
  const first = variants[0];
  if (first) first.open = true;
  state.at = state.picked.indexOf(q);
  state.open = q;
  draw();
}

function follow() {  // the address says which question
  const found = /^#q=(.+)$/.exec(location.hash);
  if (!found) return;
  let id = null;
  try { id = decodeURIComponent(found[1]); } catch { return; }
  const q = data.questions.id.indexOf(id);
  if (q < 0) return;
  showQuestion(q);
  $("question").scrollIntoView();
  $("question-title").focus({ preventScroll: true });
}

function go(q) {  // open a question, also the one that is open
  if (location.hash === address(q)) follow();
  else location.hash = address(q);
}

function step(by) {  // to the next question of those picked
  const place = state.picked.indexOf(state.open) + by;
  if (place >= 0 && place < state.picked.length) go(state.picked[place]);
}

// ---------------------------------------------------------------- CSV of what was picked

function cell(value) {  // as in a CSV file; no spreadsheet takes it for a formula
  let text = String(value ?? "").replaceAll("\0", " ");
  if (/^[=+\-@\t\r']/.test(text) && !/^[-+]?[0-9.,]*[0-9][0-9.,]*([eE][-+]?[0-9]+)?%?$/.test(text)) text = `'${text}`;
  return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

function csvText() {
  const lines = ["run,question_id,subject,method,index,trial,outcome,answer,prediction,reply,error"];
  for (const r of state.runs) {
    const run = runs[r];
    for (const q of state.picked) {
      for (let s = 0; s < data.slots.length; s++) {
        const at = q * data.slots.length + s;
        for (const i of run.cells[at] < 0 ? [] : [run.cells[at], ...(run.more.get(at) || [])]) {
          const said = (codes) => (codes && codes[i] >= 0 ? data.texts[codes[i]] : "");
          const slot = data.slots[s], trial = run.t ? run.t[i] : 0;
          lines.push([run.name, data.questions.id[q], data.questions.subject[q], slot.method, slot.index, trial,
            WORDS[+run.o[i]], run.a[i], run.p[i], said(run.r), said(run.err)].map(cell).join(","));
        }
      }
    }
  }
  return `${lines.join("\n")}\n`;
}

function save() {
  const url = URL.createObjectURL(new Blob([csvText()], { type: "text/csv" }));
  el("a", { href: url, download: "replies.csv" }).click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}

// ---------------------------------------------------------------- controls

function options(select, pairs) {
  select.replaceChildren(...pairs.map(([value, words]) => el("option", { value }, words)));
}

function controls() {
  const hidden = { differ: runs.length < 2 };
  options($("kind"), Object.entries(kinds()).filter(([name]) => !hidden[name]).map(([name, [words]]) => [name, words]));
  options($("sort"), Object.entries(SORTS).map(([name, [words]]) => [name, words]));
  const subjects = [...new Set(data.questions.subject.filter((s) => s !== null && s !== undefined).map(String))].sort();
  options($("subject"), [["", "all subjects"], ...subjects.map((s) => [s, s])]);
  $("subject").parentElement.hidden = subjects.length < 2;
  const methods = new Map(data.slots.map((slot) => [slot.method, slot.words]));
  options($("method"), [["", "(does not matter)"], ...methods]);
  for (const id of ["kind", "subject", "method"]) $(id).addEventListener("change", pick);
  $("sort").addEventListener("change", () => { state.sort = $("sort").value; pick(); });
  let waiting = 0;
  $("search").addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(pick, 150); });
  $("size").addEventListener("change", () => { state.cell = +$("size").value; layout(); });
  $("save").addEventListener("click", save);
  $("more").addEventListener("click", () => { listed += 200; listQuestions(); });
  $("before").addEventListener("click", () => step(-1));
  $("after").addEventListener("click", () => step(1));
  const boxes = runs.map((run, r) => {
    const box = el("input", { type: "checkbox", checked: state.runs.includes(r), value: String(r) });
    box.addEventListener("change", () => {
      const now = runs.map((_, k) => k).filter((k) => $("runs").querySelector(`input[value="${k}"]`).checked);
      if (!now.length) { box.checked = true; return; }
      state.runs = now;
      pick();
      if (state.open >= 0) showQuestion(state.open);
    });
    return el("label", {}, box, ` ${run.name}`);
  });
  $("runs").append(...boxes);
  $("runs").hidden = runs.length < 2;
  $("differ").parentElement.hidden = runs.length < 2;
  $("differ").addEventListener("change", () => { state.differ = $("differ").checked; draw(); });
}

function listen() {
  const box = $("map-scroll");
  box.addEventListener("scroll", draw);
  box.addEventListener("click", (event) => {
    const at = under(event);
    if (at) go(state.picked[at[0]]);
  });
  box.addEventListener("mousemove", (event) => {
    const at = under(event);
    $("map-said").textContent = at ? describe(...at) : "";
  });
  box.addEventListener("keydown", (event) => {
    const page = Math.max(1, Math.floor(box.clientHeight / state.cell) - 1);
    const by = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity }[event.key];
    if (by !== undefined) { move(state.at + by); event.preventDefault(); }
    if (event.key === "Enter" && state.at >= 0) go(state.picked[state.at]);
  });
  addEventListener("hashchange", follow);
  addEventListener("click", (event) => {  // in a notebook's frame a link would be one of the notebook
    const link = event.target.closest('a[href^="#"]');
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    const to = link.getAttribute("href");
    if (location.hash === to) follow();
    else location.hash = to;
    const part = $(to.slice(1));
    if (part) part.scrollIntoView();
  });
  addEventListener("resize", layout);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { readColours(); layout(); });
  addEventListener("keydown", (event) => {
    if (event.target.closest("input, select, textarea") || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "/") { $("search").focus(); event.preventDefault(); }
    if (event.key === "j") step(1);
    if (event.key === "k") step(-1);
    if (event.key === "m") $("map-scroll").focus();
  });
}

async function start() {
  data = await unpack($("data").textContent);
  original = data.slots.findIndex((slot) => slot.method === "original");
  runs = data.runs.map((run) => indexed(run, data.questions.id.length, data.slots.length));
  state.runs = runs.slice(0, 2).map((_, r) => r);
  readColours();
  controls();
  $("browse").hidden = false;
  pick();
  listen();
  follow();
  $("loading").hidden = true;
  document.documentElement.dataset.ready = "yes";
}

start().catch((error) => { $("loading").textContent = `The replies cannot be shown in this browser (${error.message}).`; });
