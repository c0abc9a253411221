// The rows of a trace: those in sight are drawn, whatever the trace has. Rows come in pages from
// /trace/ID/rows; the address has the view (depth, zoom, only) and the step that is shown.
"use strict";
(() => {
  const root = document.getElementById("trace");
  if (!root) return;
  const list = document.getElementById("rows"), beside = document.getElementById("beside"), map = document.getElementById("map");
  const height = 24, size = 200, wall = Number(root.dataset.wall);
  let state = new URLSearchParams(location.search);
  let total = 0, here = -1, generation = 0;
  let pages = new Map(); // number of a page: its rows, or null while they are fetched
  let shown = new Map(); // rows that are drawn
  let folded = []; // rows of the view whose rows below are hidden: [row, below], apart and in order

  // Rows that are seen, for rows of the view and back.
  const hidden = () => folded.reduce((sum, f) => sum + f[1], 0);
  const rowAt = (seen) => { for (const [row, below] of folded) { if (seen <= row) break; seen += below; } return seen; };
  const seenAt = (row) => { let out = row; for (const [from, below] of folded) { if (row <= from) break; out -= Math.min(below, row - from); } return out; };
  const known = (row) => pages.get(Math.floor(row / size))?.[row % size];

  const element = (name, className, text) => { const e = document.createElement(name); if (className) e.className = className; if (text) e.textContent = text; return e; };
  const drawing = (name, attributes) => { const e = document.createElementNS("http://www.w3.org/2000/svg", name); for (const k in attributes) e.setAttribute(k, attributes[k]); return e; };
  function draw(r) {
    const a = element("a", "row" + (r.g ? " critical" : "") + (r.n === here ? " here" : ""));
    const what = element("span", "what");
    what.dataset.depth = Math.min(r.d, 12);
    if (r.below) {
      const open = !folded.some((f) => f[0] === r.n);
      const fold = element("button", "fold", open ? "▾" : "▸");
      fold.type = "button";
      fold.tabIndex = -1;
      fold.setAttribute("aria-label", open ? "fold" : "unfold");
      fold.onclick = (e) => { e.preventDefault(); e.stopPropagation(); toggle(r); };
      what.append(fold);
    }
    what.append(element("i", "dot " + r.k));
    if (r.k !== "delegation") what.append(element("small", "", r.k), " ");
    what.append(element("b", "", r.t));
    if (r.s) what.append(" ", element("span", r.s === "running" ? "busy" : /^(error|lost)/.test(r.s) ? "bad" : "soft", r.s));
    if (r.h) what.append(" ", element("small", "hint", r.h));
    what.title = r.t + (r.h ? " " + r.h : "");
    const svg = drawing("svg", { viewBox: "0 0 1000 10", preserveAspectRatio: "none", "aria-hidden": "true", class: /^(error|lost)/.test(r.s) ? "failed" : r.k });
    svg.append(drawing("rect", { class: "beside", x: r.b[0], width: r.b[1], height: 10 }));
    for (const c of r.c || []) svg.append(drawing("rect", { x: c[0], width: c[1], height: 10 }));
    for (const m of r.m || []) {
      const mark = drawing("rect", { class: "mark", x: m.x, width: 3, height: 10 }), title = drawing("title", {});
      title.textContent = m.t;
      mark.append(title);
      svg.append(mark);
    }
    a.append(what, svg, element("span", "n", r.took), element("span", "n", r.g), element("span", "n", r.tok), element("span", "n", r.usd));
    a.tabIndex = -1;
    a.row = r.n;
    const to = new URLSearchParams(state);
    to.set("step", r.id);
    a.href = location.pathname + "?" + to;
    a.onclick = (e) => { if (e.ctrlKey || e.metaKey || e.shiftKey) return; e.preventDefault(); go(r.n); show(r); };
    return a;
  }

  // get fetches the page that has a row of the view.
  async function get(row, step) {
    const n = Math.floor(row / size), mine = generation;
    if (pages.has(n)) return;
    pages.set(n, null);
    const query = new URLSearchParams(state);
    query.set("at", n * size);
    if (step) query.set("step", step);
    try {
      const answer = await fetch(root.dataset.rows + "?" + query);
      if (!answer.ok) throw new Error(await answer.text());
      const got = await answer.json();
      if (mine !== generation) return;
      pages.set(n, got.rows);
      total = got.total;
      document.getElementById("ticks").replaceChildren(...got.ticks.map((t) => element("i", "", t)));
      const frame = document.getElementById("window");
      frame.setAttribute("x", got.window[0]);
      frame.setAttribute("width", got.window[1]);
      paint();
      return got;
    } catch (error) {
      if (mine === generation) { pages.delete(n); status.textContent = "The rows cannot be read: " + error.message; status.hidden = false; }
    }
  }

  const space = element("div", "space"), status = element("p", "bad");
  status.hidden = true;
  function paint() {
    if (!pages.get(0) && !total) return;
    const count = Math.max(0, total - hidden());
    space.style.height = count * height + "px";
    const first = Math.max(0, Math.floor(list.scrollTop / height) - 10);
    const last = Math.min(count, Math.ceil((list.scrollTop + list.clientHeight) / height) + 10);
    const before = shown;
    shown = new Map();
    for (let seen = first; seen < last; seen++) {
      const row = rowAt(seen), r = known(row);
      if (!r) { get(row); continue; }
      const e = before.get(row) || draw(r);
      e.style.top = seen * height + "px";
      shown.set(row, e);
    }
    for (const near of [first - size, last + size]) if (near >= 0 && near < count) get(rowAt(near)); // before they are scrolled to
    for (const e of Array.from(list.children)) if (e !== space && shown.get(e.row) !== e) e.remove();
    list.append(...Array.from(shown.values()).filter((e) => !e.isConnected));
    if (!total && pages.get(0)) list.append(element("p", "empty", "No step of this trace is in this view."));
  }
  let painting = false;
  const soon = () => { if (!painting) { painting = true; requestAnimationFrame(() => { painting = false; paint(); }); } };

  function go(row) {
    here = Math.max(0, Math.min(total - 1, row));
    const top = seenAt(here) * height;
    if (top < list.scrollTop) list.scrollTop = top;
    else if (top + height > list.scrollTop + list.clientHeight) list.scrollTop = top + height - list.clientHeight;
    shown = new Map(); // they look different
    paint();
  }
  const move = (by) => go(rowAt(Math.max(0, Math.min(total - hidden() - 1, (here < 0 ? -1 : seenAt(here)) + by))));
  function toggle(r) {
    const at = folded.findIndex((f) => f[0] === r.n);
    if (at >= 0) folded.splice(at, 1);
    else if (r.below) folded = folded.filter((f) => f[0] < r.n || f[0] > r.n + r.below).concat([[r.n, r.below]]).sort((a, b) => a[0] - b[0]);
    go(r.n);
  }

  // show fetches the step beside the rows.
  let asked = "";
  async function show(r) {
    asked = r.id;
    state.set("step", r.id);
    history.replaceState(null, "", location.pathname + "?" + state);
    const answer = await fetch("/trace/" + location.pathname.split("/")[2] + "/step/" + encodeURIComponent(r.id));
    const step = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("step");
    if (asked === r.id) beside.replaceChildren(step || element("p", "bad", "The step cannot be read."));
  }

  // view is another part of the trace, which the address has from now on.
  async function view(changes, keep) {
    const before = here >= 0 ? known(here)?.id : null;
    for (const k in changes) { if (changes[k] === "" || changes[k] == null) state.delete(k); else state.set(k, changes[k]); }
    state.delete("row");
    if (!keep) history.pushState(null, "", location.pathname + (state.size ? "?" + state : ""));
    generation++;
    pages = new Map();
    shown = new Map();
    folded = [];
    here = -1;
    list.scrollTop = 0;
    document.getElementById("unzoom").hidden = !state.get("zoom");
    document.getElementById("depth").value = state.get("depth") || "";
    const got = await get(0, before);
    for (const a of root.querySelectorAll(".bar .views > *")) {
      const only = { "all steps": "", "critical path": "critical", failed: "failed" }[a.textContent];
      const to = new URLSearchParams(state);
      if (only) to.set("only", only); else to.delete("only");
      const now = (state.get("only") || "") === only;
      const fresh = element(now ? "b" : "a", "", a.textContent);
      if (!now) { fresh.href = "?" + to; fresh.onclick = (e) => { e.preventDefault(); view({ only }); }; }
      a.replaceWith(fresh);
    }
    if (got && got.step >= 0) { await get(got.step); go(got.step); list.scrollTop = Math.max(0, seenAt(got.step) * height - list.clientHeight / 3); paint(); }
  }
  const window_ = () => { const [a, b] = (state.get("zoom") || "").split("-").map(Number); return a >= 0 && b > a ? [a, b] : [0, wall]; };
  const zoom = (from, to) => {
    from = Math.max(0, from); to = Math.min(wall, to);
    if (to - from < 0.001) return;
    view({ zoom: from <= 0 && to >= wall ? "" : from.toFixed(3) + "-" + to.toFixed(3) });
  };

  // Dragging over the map or the scale zooms.
  function drags(e, range, box) {
    e.addEventListener("pointerdown", (down) => {
      if (down.button) return;
      const r = box(), left = root.querySelector(".left").getBoundingClientRect();
      const at = (p) => Math.max(0, Math.min(1, (p.clientX - r.left) / r.width));
      const from = at(down), mark = element("div", "drag");
      if (down.clientX < r.left || down.clientX > r.right) return;
      down.preventDefault();
      root.querySelector(".left").append(mark);
      const moved = (p) => { const a = Math.min(from, at(p)), b = Math.max(from, at(p)); mark.style.left = r.left - left.left + a * r.width + "px"; mark.style.width = (b - a) * r.width + "px"; };
      const up = (p) => {
        removeEventListener("pointermove", moved);
        removeEventListener("pointerup", up);
        mark.remove();
        const [a, b] = range(), x = Math.min(from, at(p)), y = Math.max(from, at(p));
        if ((y - x) * r.width > 4) zoom(a + x * (b - a), a + y * (b - a));
      };
      addEventListener("pointermove", moved);
      addEventListener("pointerup", up);
    });
  }
  drags(map, () => [0, wall], () => map.getBoundingClientRect());
  drags(root.querySelector(".axis"), window_, () => document.getElementById("ticks").getBoundingClientRect());

  const help = document.getElementById("keys");
  const depth = () => Number(state.get("depth")) || Number(root.dataset.deep);
  const keys = {
    j: () => move(1), k: () => move(-1), ArrowDown: () => move(1), ArrowUp: () => move(-1),
    PageDown: () => move(Math.floor(list.clientHeight / height)), PageUp: () => move(-Math.floor(list.clientHeight / height)),
    Home: () => move(-1e9), End: () => move(1e9),
    Enter: () => { const r = known(here); if (r) show(r); },
    ArrowLeft: () => { const r = known(here); if (!r) return; if (r.below && !folded.some((f) => f[0] === r.n)) return toggle(r); for (let n = here - 1; n >= 0 && known(n); n--) if (known(n).d < r.d) return go(n); },
    ArrowRight: () => { const r = known(here); if (r && folded.some((f) => f[0] === r.n)) toggle(r); else move(1); },
    "[": () => view({ depth: Math.max(1, depth() - 1) }), "]": () => view({ depth: depth() + 1 >= Number(root.dataset.deep) ? "" : depth() + 1 }),
    z: () => { const r = known(here); if (!r) return; const [a, b] = window_(), w = (b - a) / 1000; zoom(a + r.b[0] * w, a + (r.b[0] + r.b[1]) * w); },
    "+": () => { const [a, b] = window_(), w = (b - a) / 4; zoom(a + w, b - w); }, "=": () => keys["+"](),
    "-": () => { const [a, b] = window_(), w = (b - a) / 2; zoom(a - w, b + w); }, 0: () => view({ zoom: "" }),
    c: () => view({ only: "critical" }), f: () => view({ only: "failed" }), a: () => view({ only: "" }),
    "?": () => help.showModal(), Escape: () => list.focus({ preventScroll: true }),
  };
  addEventListener("keydown", (e) => {
    if (e.ctrlKey || e.metaKey || e.altKey || help.open || e.target.matches("input, select, textarea") || e.target.closest(".beside-rows") && /^Arrow|Page|Home|End|Enter/.test(e.key)) return;
    if (e.key === "Enter" && e.target.closest("a, button, summary") && !list.contains(e.target)) return;
    if (!Object.hasOwn(keys, e.key)) return;
    keys[e.key]();
    e.preventDefault();
    e.stopImmediatePropagation();
  }, true);

  list.append(space);
  list.querySelectorAll(".row").forEach((r, n) => { r.style.top = n * height + "px"; space.style.height = (n + 1) * height + "px"; }); // until the first answer
  list.classList.add("virtual");
  root.classList.add("scripted");
  list.before(status);
  list.addEventListener("scroll", soon, { passive: true });
  addEventListener("resize", soon);
  addEventListener("popstate", () => { state = new URLSearchParams(location.search); view({}, true); });
  document.getElementById("depth").onchange = (e) => view({ depth: e.target.value });
  document.getElementById("unzoom").onclick = (e) => { e.preventDefault(); view({ zoom: "" }); };
  const button = document.getElementById("help");
  button.hidden = false;
  button.onclick = () => help.showModal();
  view({}, true);
})();
