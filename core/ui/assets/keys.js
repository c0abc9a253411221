// Moves between lines by keyboard, and keeps the page of what runs now fresh.
"use strict";
let at = -1;
const rows = () => Array.from(document.querySelectorAll("[data-row]"));
function go(to) {
  const list = rows();
  if (!list.length) return;
  list[at]?.classList.remove("here");
  at = Math.max(0, Math.min(list.length - 1, to));
  list[at].classList.add("here");
  list[at].scrollIntoView({ block: "nearest" });
}
addEventListener("keydown", (e) => {
  if (e.ctrlKey || e.metaKey || e.altKey) return;
  if (e.target.matches("input")) {
    if (e.key === "Escape") e.target.blur();
    return;
  }
  const row = rows()[at];
  switch (e.key) {
    case "j": go(at + 1); break;
    case "k": go(at - 1); break;
    case "Enter": {
      if (!row || e.target.closest("a, summary")) return;
      const fold = row.querySelector("details.inside");
      if (fold) fold.open = !fold.open;
      else row.querySelector("a")?.click();
      break;
    }
    case "e": {
      const folds = document.querySelectorAll("details.inside");
      const open = !Array.from(folds).every((f) => f.open);
      folds.forEach((f) => { f.open = open; });
      break;
    }
    case "/": document.querySelector("input[type=search]")?.focus(); break;
    case "u": location.href = "/"; break;
    default: return;
  }
  e.preventDefault();
});
async function refresh() {
  if (!document.hidden) {
    const text = await (await fetch(location.href)).text();
    const fresh = new DOMParser().parseFromString(text, "text/html").querySelector("[data-live]");
    if (fresh) { document.querySelector("[data-live]").replaceWith(fresh); if (at >= 0) go(at); }
  }
}
if (document.querySelector("[data-live]")) setInterval(() => refresh().catch(() => {}), 3000);
