// The roofline of the kernel, and what bounds its time one by one.
import { Picture, bytes, el, laneColor, percent, table, theme, time } from "./dom.ts";
import { type Selection, byLine } from "./model.ts";

const HEIGHT = 280, LEFT = 60, BOTTOM = 34;

export function roofline(selection: Selection): HTMLElement {
  const kernel = selection.now;
  const { tflops, hbm } = kernel.peaks, ns = kernel.totalNs || 1;
  const intensity = kernel.hbmBytes ? kernel.flops / kernel.hbmBytes : 0;
  const reached = kernel.flops / ns / 1e3, ridge = (tflops * 1e3) / hbm;
  const points = [{ name: kernel.name, flops: kernel.flops, hbmBytes: kernel.hbmBytes, ns }, ...kernel.loops]
    .filter((p) => p.flops && p.hbmBytes && p.ns)
    .map((p) => ({ name: p.name, x: p.flops / p.hbmBytes, y: p.flops / p.ns / 1e3 }));
  const roof = Math.min(tflops, (intensity * hbm) / 1e3);
  const low = Math.min(ridge / 100, intensity > 0 ? intensity / 4 : ridge);
  const high = Math.max(ridge * 20, ...points.map((p) => p.x * 4));
  const least = Math.min(tflops, (low * hbm) / 1e3, ...points.map((p) => p.y / 4));
  const picture = new Picture(() => HEIGHT, (c, w) => {
    const t = theme();
    const log = (v: number, a: number, b: number) => (Math.log(v) - Math.log(a)) / (Math.log(b) - Math.log(a));
    const x = (v: number) => LEFT + log(v, low, high) * (w - LEFT - 12);
    const y = (v: number) => HEIGHT - BOTTOM - log(v, least, tflops * 2) * (HEIGHT - BOTTOM - 8);
    c.strokeStyle = t.grid; c.fillStyle = t.soft; c.textAlign = "center";
    for (const [value, label] of powers(low, high)) {
      c.beginPath(); c.moveTo(x(value), 8); c.lineTo(x(value), HEIGHT - BOTTOM); c.stroke();
      c.fillText(label, x(value), HEIGHT - BOTTOM + 14);
    }
    c.textAlign = "right";
    for (const [value, label] of powers(least, tflops * 2)) {
      c.beginPath(); c.moveTo(LEFT, y(value)); c.lineTo(w - 12, y(value)); c.stroke();
      c.fillText(label, LEFT - 6, y(value) + 4);
    }
    c.textAlign = "center"; c.fillText("FLOP per HBM byte", LEFT + (w - LEFT) / 2, HEIGHT - 4);
    c.textAlign = "left"; c.fillText("TFLOP/s", 4, 14);
    c.strokeStyle = t.ink; c.lineWidth = 2;
    c.beginPath(); c.moveTo(x(low), y((low * hbm) / 1e3)); c.lineTo(x(ridge), y(tflops)); c.lineTo(x(high), y(tflops));
    c.stroke(); c.lineWidth = 1;
    const taken: [x: number, y: number][] = [];
    points.forEach((p, n) => {
      const [px, py] = [x(p.x), y(p.y)];
      c.fillStyle = n ? t.soft : t.accent; c.beginPath(); c.arc(px, py, n ? 4 : 5, 0, 7); c.fill();
      // A label that would cover another one is left out: the table has all of them.
      if (taken.some(([a, b]) => Math.abs(a - px) < 160 && Math.abs(b - py) < 14)) return;
      taken.push([px, py]);
      c.textAlign = px > w - 180 ? "right" : "left"; c.fillText(p.name, px > w - 180 ? px - 9 : px + 9, py + 4);
    });
  }, `Roofline: ${reached.toFixed(2)} of ${roof.toFixed(2)} TFLOP/s at ${intensity.toFixed(1)} FLOP per byte`);
  picture.request();
  const bounds: [string, number, string][] = [
    ["Matmul peak", kernel.flops / tflops / 1e3,
      `${kernel.flops} FLOP at ${tflops} TFLOP/s (MFU ${percent(kernel.mfu)})`],
    ["HBM bandwidth", kernel.hbmBytes / hbm, `${kernel.hbmBytes} bytes at ${hbm} GB/s (MBU ${percent(kernel.mbu)})`],
    ...Object.entries(kernel.lanes).filter(([, { busy }]) => busy).map(([name, { busy, stalls }]) => {
      const [most] = Object.keys(stalls);
      return [`${name} busy`, busy, most ? `stalls most for ${most}` : ""] as [string, number, string];
    }),
    ["Critical path", kernel.totalNs, "waits and latencies included: the total"],
  ];
  const bar = (share: number, name: string) => {
    const color = laneColor(kernel.laneNames, kernel.laneNames.indexOf(name.split(" ")[0]!));
    const style = `--share:${Math.min(100, 100 * share)}%;--fill:${color}`;
    return el("span", { class: "meter", style }, percent(share));
  };
  const rows = bounds.sort((a, b) => a[1] - b[1]).map(([n, t, why]) => [n, time(t), bar(t / ns, n), why]);
  const matmuls = !kernel.flops ? "The kernel has no matmul. "
    : `${reached.toFixed(2)} TFLOP/s of matmuls at ${intensity.toFixed(1)} FLOP per HBM byte; `
      + `the roof there is ${roof.toFixed(1)} TFLOP/s. `;
  return el("div", {},
    el("p", {}, matmuls, "No bound alone exceeds the total: the difference is waiting."), picture.canvas,
    table(["bound", "time", "share of the total", ""], rows, "Bound by bound"),
    kernel.loops.length ? loops(selection) : null);
}

/** The powers of ten from `low` to `high`, with their labels. */
function* powers(low: number, high: number): Generator<[value: number, label: string]> {
  for (let p = Math.ceil(Math.log10(low)); 10 ** p <= high; p++) yield [10 ** p, (10 ** p).toFixed(Math.max(0, -p))];
}

/** The loops; those around the selected line are marked, and each selects its first instruction. */
function loops(selection: Selection): HTMLElement {
  const kernel = selection.now, { tflops, hbm } = kernel.peaks, { call } = kernel.bars, lines = byLine(kernel);
  const rows = kernel.loops.map(({ name, at, flops, hbmBytes, ns: loopNs, calls: [first, last] }) => {
    const rate = flops / (loopNs || 1) / 1e3, bandwidth = hbmBytes / (loopNs || 1);
    const pick = () => selection.pick(call.findIndex((n) => first <= n && n <= last));
    return [el("button", { onclick: pick }, el("code", {}, name)), at ? String(at[1]) : "", time(loopNs),
      rate.toFixed(2), percent(rate / tflops), hbmBytes ? (flops / hbmBytes).toFixed(1) : "no HBM byte",
      percent(bandwidth / hbm)];
  });
  const head = ["loop", "line", "time", "TFLOP/s", "MFU", "FLOP per HBM byte", "MBU"];
  const found = table(head, rows, "Loop by loop, while any of its instructions is played");
  const text = el("p", { class: "details", "aria-live": "polite" }), elements = [...found.querySelectorAll("tbody tr")];
  const changed = () => {
    const line = lines.get(selection.key), used = line ? [...new Set(line.bars.map((bar) => call[bar]!))] : [];
    const around = kernel.loops.map(({ calls: [first, last] }) => used.some((n) => first <= n && n <= last));
    elements.forEach((row, n) => row.classList.toggle("picked", around[n]!));
    const names = kernel.loops.filter((_, n) => around[n]).map(({ name }) => name);
    const at = kernel.calls[used[0] ?? -1]?.at?.[1], where = at === undefined ? selection.key : `line ${at}`;
    text.textContent = !line ? "Select a line in another view to mark its loops."
      : `Selected: ${where}, busy ${time(line.busy / kernel.perNs)}, ${bytes(line.bytes)} of HBM; `
        + `${names.length ? `inside ${names.join(", ")}` : "in no loop"}.`;
  };
  selection.follow(changed);
  changed();
  return el("div", {}, text, found);
}
