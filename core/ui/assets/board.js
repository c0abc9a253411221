// Draws the charts of a board so that they can be zoomed and read at the cursor, and loads the panels that
// took too long for the page.
"use strict";
const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const resolved = (() => { // light-dark() is resolved in a color only
  const probe = document.createElement("span");
  probe.hidden = true;
  document.body.append(probe);
  return (name) => { probe.style.color = `var(${name})`; return getComputedStyle(probe).color; };
})();

const digits = (n) => (Number.isInteger(n) ? String(n) : Math.abs(n) < 0.01 ? n.toPrecision(2) : String(+n.toPrecision(3)));
function span(ms) {
  if (ms < 0) return "-" + span(-ms);
  const s = ms / 1000, two = (n) => String(Math.floor(n)).padStart(2, "0");
  if (ms && ms < 1) return digits(ms) + "ms";
  if (s < 1) return Math.floor(ms) + "ms";
  if (s < 10) return s.toFixed(1) + "s";
  if (s < 60) return s.toFixed(0) + "s";
  if (s < 3600) return Math.floor(s / 60) + "m" + two(s % 60) + "s";
  if (s < 172800) return Math.floor(s / 3600) + "h" + two((s / 60) % 60) + "m";
  return Math.floor(s / 86400) + "d" + two((s / 3600) % 24) + "h";
}
function scaled(n, base, names, gap) {
  let i = 0;
  while (Math.abs(n) >= base && i < names.length - 1) { n /= base; i++; }
  return digits(n) + gap + names[i];
}
function format(unit, n) {
  if (n == null) return "";
  switch (unit) {
    case "ms": return span(n);
    case "s": return span(n * 1000);
    case "bytes": return scaled(n, 1024, ["B", "KiB", "MiB", "GiB", "TiB"], " ");
    case "percentunit": return digits(n * 100) + "%";
    case "currencyUSD": return n && Math.abs(n) < 0.01 ? "$" + n.toPrecision(2) : Math.abs(n) < 1000 ? "$" + n.toFixed(2) : "$" + scaled(n, 1000, ["", "k", "M", "G"], "");
  }
  return Number.isInteger(n) && Math.abs(n) < 10000 ? String(n) : scaled(n, 1000, ["", "k", "M", "G", "T"], "");
}

// moment is a time as briefly as the distance of the ticks allows.
function moment(seconds, step) {
  const t = new Date(seconds * 1000), two = (n) => String(n).padStart(2, "0");
  const clock = two(t.getHours()) + ":" + two(t.getMinutes());
  if (step < 60) return clock + ":" + two(t.getSeconds());
  return step >= 86400 || clock === "00:00" ? t.toLocaleDateString("en", { month: "short", day: "numeric" }) : clock;
}

// zoom writes a range of time into the address, which is how the page is asked for it.
function zoom(from, to) {
  const url = new URL(location.href);
  url.searchParams.set("from", Math.round(from * 1000));
  url.searchParams.set("to", Math.round(to * 1000));
  location.href = url;
}

function draw(figure) {
  const data = JSON.parse(figure.querySelector("script").textContent);
  const plot = figure.querySelector(".plot");
  const rows = Array.from(figure.querySelectorAll(".legend tbody tr"));
  // Asked for anew at each drawing: the theme may change while the page is open.
  const colors = rows.map((r) => () => resolved("--s" + r.querySelector(".sw").classList[1].slice(1)));
  const ink = () => resolved("--soft"), line = () => resolved("--line");
  const [times, ...values] = data.values;
  const hidden = values.map(() => false);
  // Stacked: each line is drawn at the sum of those below it, the uppermost first.
  const stacked = () => {
    const sum = times.map(() => 0);
    return values.map((list, i) => list.map((v, k) => { if (!hidden[i]) sum[k] += v || 0; return v == null || hidden[i] ? null : sum[k]; }));
  };
  // A line connects what is near: uPlot leaves a gap at null, and none at undefined.
  const bridged = (list) => {
    let last = null;
    const out = list.map((v) => v ?? undefined);
    list.forEach((v, k) => {
      if (v == null) return;
      if (last != null && times[k] - times[last] > data.bridge) out.fill(null, last + 1, k);
      last = k;
    });
    return out;
  };
  const shown = () => (data.stacked ? [times, ...stacked().reverse()] : [times, ...values.map(bridged)]);
  const order = data.stacked ? values.map((_, i) => values.length - 1 - i) : values.map((_, i) => i);
  const heads = Array.from(figure.querySelectorAll(".legend thead th"));
  const cells = rows.map((r) => Array.from(r.querySelectorAll("td")).map((td) => ({ td, text: td.textContent })));
  const title = heads[0].textContent;
  const size = () => ({ width: plot.clientWidth, height: plot.clientHeight });
  plot.classList.add("drawn");
  const axis = { stroke: ink, grid: { stroke: line, width: 1 }, ticks: { stroke: line, width: 1 }, font: "11px system-ui, sans-serif" };
  const u = new uPlot({
    ...size(),
    legend: { show: false },
    padding: [8, 12, 0, 0],
    cursor: { drag: { x: true, y: false }, points: { show: !data.stacked }, sync: { key: "board" } },
    scales: {
      x: { time: true, range: [data.from, data.to] },
      y: { range: (_, min, max) => [0, (max || 1) * 1.06] },
    },
    series: [{}, ...order.map((i) => ({
      label: data.names[i], stroke: colors[i], width: data.stacked ? 0 : 1.5, spanGaps: false, fill: data.stacked ? colors[i] : undefined,
      paths: data.stacked ? uPlot.paths.bars({ size: [0.9, 60], align: 1 }) : undefined,
      points: { show: !data.stacked && values[i].filter((v) => v != null).length < 60, size: 4, fill: colors[i] },
    }))],
    axes: [
      { ...axis, size: 26, space: 70, values: (_, ticks, __, ___, step) => ticks.map((t) => moment(t, step)) },
      { ...axis, size: 62, values: (_, ticks) => ticks.map((n) => format(data.unit, n)) },
    ],
    hooks: {
      draw: [(u) => {
        if (!data.marks) return;
        const { ctx, bbox } = u;
        ctx.save();
        ctx.strokeStyle = ink();
        ctx.setLineDash([3 * devicePixelRatio, 3 * devicePixelRatio]);
        for (const m of data.marks) {
          const x = Math.round(u.valToPos(m.at, "x", true)) + 0.5;
          if (x < bbox.left || x > bbox.left + bbox.width) continue;
          ctx.beginPath();
          ctx.moveTo(x, bbox.top);
          ctx.lineTo(x, bbox.top + bbox.height);
          ctx.stroke();
        }
        ctx.restore();
      }],
      setSelect: [(u) => {
        if (u.select.width > 4) zoom(u.posToVal(u.select.left, "x"), u.posToVal(u.select.left + u.select.width, "x"));
      }],
      setCursor: [(u) => {
        const at = u.cursor.idx;
        const near = (data.marks || []).find((m) => Math.abs(u.valToPos(m.at, "x") - u.cursor.left) < 5);
        heads[0].textContent = near ? new Date(near.at * 1000).toLocaleString() + " " + near.text : at == null ? title : new Date(times[at] * 1000).toLocaleString();
        rows.forEach((_, i) => cells[i].forEach((c, n) => {
          c.td.textContent = at == null ? c.text : n === cells[i].length - 1 ? format(data.unit, values[i][at]) : "";
        }));
      }],
    },
  }, shown(), plot);
  rows.forEach((row, i) => row.addEventListener("click", () => {
    hidden[i] = !hidden[i];
    row.toggleAttribute("data-off", hidden[i]);
    if (data.stacked) u.setData(shown());
    else u.setSeries(i + 1, { show: !hidden[i] });
  }));
  return { resize: () => u.setSize(size()), redraw: () => u.redraw() };
}

const charts = [];
function drawAll(root) {
  for (const figure of root.querySelectorAll("figure.chart:has(> script)")) charts.push(draw(figure));
}
drawAll(document);
let waiting;
addEventListener("resize", () => { clearTimeout(waiting); waiting = setTimeout(() => charts.forEach((c) => c.resize()), 100); });
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => charts.forEach((c) => c.redraw()));

// Panels that took too long are loaded one after the other, each in its place.
(async () => {
  for (const late of document.querySelectorAll("[data-late]")) {
    const panel = late.closest(".panel");
    try {
      const answer = await fetch(late.dataset.late);
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      const fresh = page.getElementById(panel.id);
      if (!fresh) throw new Error(answer.statusText);
      panel.replaceChildren(...fresh.children);
      drawAll(panel);
    } catch (e) {
      late.textContent = "This panel did not load: " + e.message;
    }
  }
})();
