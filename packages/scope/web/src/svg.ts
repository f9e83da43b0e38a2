// A view as SVG: its text where the browser laid it out, its pictures as the calls that draw them.
import { Picture, theme } from "./dom.ts";

/** As XML has it, which has no control characters. */
const escaped = (text: string): string =>
  text.replace(/[\0-\x08\v\f\x0e-\x1f\ufffe\uffff]/g, "\ufffd").replace(/[&<>"]/g, (c) => `&#${c.charCodeAt(0)};`);
const n = (x: number): string => String(+x.toFixed(2));
type Attributes = Record<string, string | number>;
const tag = (name: string, attributes: Attributes, inner = ""): string =>
  `<${name} ${Object.entries(attributes).map(attribute).join(" ")}>${inner}</${name}>`;
const attribute = ([name, value]: [string, string | number]): string =>
  `${name}="${typeof value === "number" ? n(value) : escaped(value)}"`;
const ANCHORS: Record<string, string> = { left: "start", center: "middle", right: "end" };

/** The part of a canvas context that pictures draw with; what is drawn becomes elements. */
class Recorder {
  fillStyle = "#000"; strokeStyle = "#000"; lineWidth = 1; textAlign = "left";
  readonly out: string[] = [];
  private path = "";
  private open: number[] = [];
  private clips = 0;
  constructor(private readonly id: string) {}
  private shape(name: string, attributes: Attributes, paint: "fill" | "stroke"): void {
    const style: Attributes = paint === "fill" ? { fill: this.fillStyle }
      : { fill: "none", stroke: this.strokeStyle, "stroke-width": this.lineWidth };
    this.out.push(tag(name, { ...attributes, ...style }));
  }
  fillRect(x: number, y: number, width: number, height: number): void {
    this.shape("rect", { x, y, width, height }, "fill");
  }
  strokeRect(x: number, y: number, width: number, height: number): void {
    this.shape("rect", { x, y, width, height }, "stroke");
  }
  fillText(text: string, x: number, y: number, most?: number): void {
    const fits: Attributes = most === undefined || 6.5 * text.length <= most ? {}
      : { textLength: most, lengthAdjust: "spacingAndGlyphs" };
    this.out.push(tag("text", { x, y, fill: this.fillStyle, "text-anchor": ANCHORS[this.textAlign]!, ...fits },
      escaped(text)));
  }
  beginPath(): void { this.path = ""; }
  moveTo(x: number, y: number): void { this.path += `M${n(x)} ${n(y)}`; }
  lineTo(x: number, y: number): void { this.path += `L${n(x)} ${n(y)}`; }
  rect(x: number, y: number, w: number, h: number): void { this.path += `M${n(x)} ${n(y)}h${n(w)}v${n(h)}h${n(-w)}z`; }
  /** Whole circles, which is what pictures draw. */
  arc(x: number, y: number, r: number): void {
    this.path += `M${n(x - r)} ${n(y)}a${n(r)} ${n(r)} 0 1 0 ${n(2 * r)} 0a${n(r)} ${n(r)} 0 1 0 ${n(-2 * r)} 0`;
  }
  stroke(): void { this.shape("path", { d: this.path }, "stroke"); }
  fill(): void { this.shape("path", { d: this.path }, "fill"); }
  save(): void { this.open.push(0); }
  clip(): void {
    const id = `${this.id}-${this.clips++}`;
    this.out.push(tag("clipPath", { id }, tag("path", { d: this.path })), `<g clip-path="url(#${id})">`);
    this.open[this.open.length - 1]!++;
  }
  restore(): void { this.out.push("</g>".repeat(this.open.pop() ?? 0)); }
}

/** The SVG text of a panel that is shown; controls are left out, as in print. */
export function svg(panel: HTMLElement): string {
  panel.querySelectorAll<HTMLElement>(".bar, select, input").forEach((control) => control.remove());
  panel.querySelectorAll<HTMLElement>(".follow").forEach((part) => part.classList.remove("follow"));
  panel.querySelectorAll<HTMLElement>(".scroll").forEach((part) => { part.style.maxHeight = "none"; });
  const pictures = [...panel.querySelectorAll("canvas")].map((canvas) => Picture.of(canvas));
  pictures.forEach((picture) => picture.now());
  const box = panel.getBoundingClientRect(), at = (r: DOMRect) => ({ x: r.x - box.x, y: r.y - box.y });
  const drawn = pictures.map((picture, i) => {
    const recorder = new Recorder(`clip-${i}`), { x, y } = at(picture.canvas.getBoundingClientRect());
    picture.draw(recorder as unknown as CanvasRenderingContext2D, picture.width, picture.height());
    return tag("g", { transform: `translate(${n(x)} ${n(y)})`, "font-size": 12,
      "aria-label": picture.canvas.getAttribute("aria-label")! }, recorder.out.join(""));
  });
  const shades = [...panel.querySelectorAll<HTMLElement>(".details, .line, .meter, .changed, .key")]
    .map((part) => shade(part, at));
  const head = { xmlns: "http://www.w3.org/2000/svg", width: box.width, height: box.height,
    viewBox: `0 0 ${n(box.width)} ${n(box.height)}`, "font-family": "system-ui, sans-serif" };
  const back = tag("rect", { width: box.width, height: box.height, fill: theme().back });
  return tag("svg", head, [back, ...shades, ...texts(panel, at), ...drawn].join("\n"));
}

type At = (r: DOMRect) => { x: number; y: number };

/** The background of an element: the part of its width that `--share` says, or all of it. */
function shade(part: HTMLElement, at: At): string {
  const r = part.getBoundingClientRect(), { x, y } = at(r), style = getComputedStyle(part);
  const [share, key, own] = ["--share", "--key", "--fill"].map((name) => style.getPropertyValue(name).trim());
  if (key) return tag("rect", { x, y: y + r.height / 2 - 2, width: parseFloat(style.fontSize), height: 4, fill: key });
  const fill = share ? own || theme().heat : style.backgroundColor, opacity: Attributes = own ? { opacity: 0.45 } : {};
  const width = share ? (r.width * parseFloat(share)) / 100 : r.width;
  return tag("rect", { x, y, width, height: r.height, fill, ...opacity });
}

/** Every line of text of an element. */
function* texts(panel: HTMLElement, at: At): Generator<string> {
  const walker = document.createTreeWalker(panel, NodeFilter.SHOW_TEXT), range = document.createRange();
  const rect = (node: Node, from: number, until: number) => {
    range.setStart(node, from); range.setEnd(node, until);
    return range.getClientRects();
  };
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const style = getComputedStyle(node.parentElement!), text = node.textContent!;
    let line: { r: DOMRect; from: number; until: number } | null = null;
    const font = { fill: style.color, "font-size": parseFloat(style.fontSize), "font-family": style.fontFamily,
      "font-weight": style.fontWeight, "xml:space": "preserve" };
    const flush = () => {
      if (!line) return "";
      const { x, y } = at(line.r);
      return tag("text", { x, y: y + 0.78 * line.r.height, ...font }, escaped(text.slice(line.from, line.until)));
    };
    for (const word of text.matchAll(/\S+/g)) {
      const whole = rect(node, word.index, word.index + word[0].length);
      if (!whole.length) continue;
      // A word that is broken over lines goes by its characters.
      const size = whole.length > 1 ? 1 : word[0].length;
      for (let from = word.index; from < word.index + word[0].length; from += size) {
        const r = rect(node, from, from + size)[0];
        if (!r) continue;
        if (line && Math.abs(line.r.y - r.y) < 2) { line.until = from + size; continue; }
        yield flush();
        line = { r, from, until: from + size };
      }
    }
    yield flush();
  }
}
