// Follows a conversation that may go on: asks once a second whether it has something new, and only then for its last turns.
"use strict";
(() => {
  const root = document.querySelector("[data-tail]"), name = document.getElementById("name");
  if (name) document.title = name.textContent + " · Earshot"; // the head was sent before it was known
  if (!root) return;
  const turns = () => root.querySelectorAll("article.turn");
  let token = "", busy = false;
  async function look() {
    if (document.hidden || busy) return;
    busy = true;
    try {
      const answer = await fetch(root.dataset.tail);
      const now = answer.ok ? await answer.text() : token;
      if (now !== token) await take(); // at first for what came since the page was made
      token = now;
    } finally { busy = false; }
  }
  async function take() {
    const page = new URL(location.href), all = Number(root.dataset.turns);
    const id = page.searchParams.get("id");
    page.search = "";
    if (id) page.searchParams.set("id", id);
    page.searchParams.set("skip", Math.max(0, all - 1));
    const answer = await fetch(page);
    if (!answer.ok) return;
    const doc = new DOMParser().parseFromString(await answer.text(), "text/html");
    if (!doc.querySelector("[data-turns]")) return; // an error
    const fresh = doc.querySelectorAll("article.turn"), last = Array.from(turns()).pop();
    const below = innerHeight + scrollY > document.documentElement.scrollHeight - 80;
    fresh.forEach((f, i) => {
      if (i || !last || all === 0) { root.append(f); return; }
      const open = last.querySelector("details.inside")?.open;
      if (open) f.querySelector("details.inside")?.setAttribute("open", "");
      last.replaceWith(f);
    });
    root.querySelector(".empty")?.remove();
    root.dataset.turns = doc.querySelector("[data-turns]").dataset.turns;
    if (below) scrollTo(0, document.documentElement.scrollHeight);
  }
  setInterval(() => look().catch(() => {}), 1000);
  look().catch(() => {});
})();
