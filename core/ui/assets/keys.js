// Moves between lines by keyboard, and keeps the page of what runs now fresh.
"use strict";
let here = null;
const rows = () => Array.from(document.querySelectorAll("[data-row]")).filter((r) => r.checkVisibility());
function go(row) {
  if (!row) return;
  here?.classList.remove("here");
  here = row;
  here.classList.add("here");
  here.tabIndex = -1;
  here.focus({ preventScroll: true });
  here.scrollIntoView({ block: "nearest" });
}
function step(by) {
  const list = rows();
  const at = here ? list.indexOf(here) : -1;
  go(list[Math.max(0, Math.min(list.length - 1, at + by))]);
}
const pages = () => Array.from(document.querySelectorAll("header nav a"));
addEventListener("keydown", (e) => {
  if (e.ctrlKey || e.metaKey || e.altKey) return;
  if (e.target.matches("input, select, textarea")) {
    if (e.key === "Escape") e.target.blur();
    return;
  }
  switch (e.key) {
    case "j": step(1); break;
    case "k": step(-1); break;
    case "Enter": {
      if (!here || e.target.closest("a, summary, button")) return;
      const fold = here.querySelector("details");
      if (fold) fold.open = !fold.open;
      else here.querySelector("a")?.click();
      break;
    }
    case "e": {
      const folds = document.querySelectorAll("details.inside");
      const open = !Array.from(folds).every((f) => f.open);
      folds.forEach((f) => { f.open = open; });
      break;
    }
    case "/": (document.querySelector("main input[type=search]") || document.querySelector("input[type=search]"))?.focus(); break;
    case "u": location.href = "/"; break;
    case "Escape": document.querySelectorAll("details.range").forEach((d) => { d.open = false; }); break;
    default: {
      const page = /^[1-9]$/.test(e.key) && pages()[e.key - 1];
      if (!page) return;
      page.click();
    }
  }
  e.preventDefault();
});
// What is new takes the place of what is there, unless somebody reads it by keyboard.
async function refresh() {
  if (document.hidden || here) return;
  const answer = await fetch(location.href);
  if (!answer.ok) return;
  const fresh = new DOMParser().parseFromString(await answer.text(), "text/html").querySelector("[data-live]");
  if (fresh && !here) document.querySelector("[data-live]").replaceWith(fresh);
}
if (document.querySelector("[data-live]")) setInterval(() => refresh().catch(() => {}), 3000);
