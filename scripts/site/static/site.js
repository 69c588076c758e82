// Excerpts among the results of a search come without the marks of formulas.
document.addEventListener("DOMContentLoaded", () => {
  if (typeof Search === "undefined" || !Search.htmlToText) return;
  const whole = Search.htmlToText;
  Search.htmlToText = (...given) => whole.apply(Search, given).replace(/\\[()[\]]/g, "");
});
