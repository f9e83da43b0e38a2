// Two runs, aligned by the text of source lines: time, HBM bytes and micro-ops of each.
import type { Document, Kernel } from "./data.ts";
import { bytes, el, table, time } from "./dom.ts";
import { type Line, byLine } from "./model.ts";

interface Side { line: string; text: string; value: Line }

/** By text of the line and its number among equal texts; a line that moved is the same line. */
function sides(doc: Document, kernel: Kernel): Map<string, Side> {
  const found = new Map<string, Side>(), counts = new Map<string, number>();
  const place = (key: string) => key.split(":").map(Number);
  for (const [key, value] of [...byLine(kernel)].sort(([a], [b]) => place(a)[0]! - place(b)[0]! || place(a)[1]! - place(b)[1]!)) {
    const [file, number] = place(key), source = doc.files[file!];
    const text = source?.lines[number! - 1]?.trim() ?? key, n = counts.get(text) ?? 0;
    counts.set(text, n + 1);
    found.set(`${text}\n${n}`, { line: source ? `${source.path.split("/").pop()}:${number}` : key, text, value });
  }
  return found;
}

export function compare(doc: Document): HTMLElement {
  const [before, after] = [doc.kernels[0]!, doc.kernels[doc.compare!]!];
  const [old, now] = [sides(doc, before), sides(doc, after)];
  const ns = (kernel: Kernel, side: Side | undefined, field: "path" | "busy") => (side?.value[field] ?? 0) / kernel.perNs;
  const signed = (value: number, unit: (n: number) => string) => value === 0 ? "0" : `${value < 0 ? "−" : "+"}${unit(Math.abs(value))}`;
  const rows = [...new Set([...old.keys(), ...now.keys()])].map((key) => {
    const [a, b] = [old.get(key), now.get(key)];
    return { a, b, path: ns(after, b, "path") - ns(before, a, "path"), busy: ns(after, b, "busy") - ns(before, a, "busy"), bytes: (b?.value.bytes ?? 0) - (a?.value.bytes ?? 0), ops: (b?.value.bars.length ?? 0) - (a?.value.bars.length ?? 0) };
  }).sort((x, y) => Math.abs(y.path) - Math.abs(x.path) || Math.abs(y.busy) - Math.abs(x.busy));
  const total = (name: string, a: number, b: number, unit: (n: number) => string) => [name, unit(a), unit(b), signed(b - a, unit)];
  return el("div", {}, table(["", "first", "second", "difference"], [
    total("time", before.totalNs, after.totalNs, time), total("HBM bytes", before.hbmBytes, after.hbmBytes, bytes), total("micro-ops", before.numOps, after.numOps, String),
    ...Object.keys({ ...before.lanes, ...after.lanes }).map((lane) => total(`${lane} busy`, before.lanes[lane]?.busy ?? 0, after.lanes[lane]?.busy ?? 0, time))], `${before.name} and ${after.name}`),
    table(["first", "second", "source", "critical path", "busy", "HBM bytes", "micro-ops"], rows.map((r) => [r.a?.line ?? "absent", r.b?.line ?? "absent", el("code", {}, (r.b ?? r.a)!.text), signed(r.path, time), signed(r.busy, time), signed(r.bytes, bytes), signed(r.ops, String)]), "By source line: second less first"));
}

/** One document of both: the kernels of the second behind those of the first. */
export function merged(one: Document, two: Document): Document {
  const shift = one.files.length, at = <T extends { at: readonly number[] | null }>(item: T): T => ({ ...item, at: item.at && [item.at[0]! + shift, item.at[1]!] });
  const kernels = two.kernels.map((k) => ({ ...k, calls: k.calls.map(at), advice: k.advice.map((a) => ({ ...a, lines: a.lines.map((l) => l && ([l[0] + shift, l[1]] as [number, number])) })) }));
  return { ...one, compare: one.kernels.length, kernels: [...one.kernels, ...kernels] as Kernel[], files: [...one.files, ...two.files], findings: [...one.findings, ...two.findings.map(at)], errors: [...one.errors, ...two.errors] };
}
