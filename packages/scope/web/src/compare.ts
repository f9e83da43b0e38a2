// Two runs, kernel by kernel and line by line, as nki_scope.sections.comparison has compared them.
import type { Comparison, Document, Kernel, Totals } from "./data.ts";
import { bytes, el, table, time } from "./dom.ts";

const signed = (value: number, unit: (n: number) => string) => value === 0 ? "0"
  : `${value < 0 ? "−" : "+"}${unit(Math.abs(value))}`;

export function compare({ kernels, only_first, only_second }: Comparison): HTMLElement {
  return el("div", {}, ...kernels.flatMap(pair),
    ...Object.entries({ first: only_first, second: only_second })
    .map(([side, names]) => names.length ? el("p", {}, `Only in the ${side}: ${names.join(", ")}.`) : null));
}

function pair({ first, second, lines }: Comparison["kernels"][number]): HTMLElement[] {
  const total = (name: string, of: (t: Totals) => number | undefined, unit: (n: number) => string) =>
    [name, ...[first, second].map((t) => unit(of(t) ?? 0)), signed((of(second) ?? 0) - (of(first) ?? 0), unit)];
  const change = ([before, after]: [number, number], unit: (n: number) => string) => signed(after - before, unit);
  const name = first.name === second.name ? second.name : `${first.name} and ${second.name}`;
  const form = second.mode === "device" ? "as its toolchain makes it" : "as written";
  const times = `${time(first.total_ns)} and ${time(second.total_ns)}`;
  return [el("h3", {}, `${name} on ${second.target}, ${form}: ${times}`),
    table(["", "first", "second", "difference"], [
      total("time", (t) => t.total_ns, time), total("HBM bytes", (t) => t.hbm_bytes, bytes),
        total("micro-ops", (t) => t.micro_ops, String),
      ...Object.keys({ ...first.busy_ns, ...second.busy_ns })
        .map((lane) => total(`${lane} busy`, (t) => t.busy_ns[lane], time))], name),
    table(["first", "second", "source", "critical path", "busy", "HBM bytes", "micro-ops"],
      lines.map((row) => [row.first ?? "absent", row.second ?? "absent", el("code", {}, row.text),
      change(row.critical_path_ns, time), change(row.busy_ns, time), change(row.hbm_bytes, bytes),
      change(row.micro_ops, String)]), `${name} by source line: second less first`)];
}

/** One document of both: the kernels of the second behind those of the first. */
export function merged(one: Document, two: Document, comparison: Comparison): Document {
  const shift = one.files.length,
    at = <T extends { at: readonly number[] | null }>(item: T): T =>
    ({ ...item, at: item.at && [item.at[0]! + shift, item.at[1]!] });
  const named = (kernel: Kernel, side: string): Kernel => ({ ...kernel, side });
  const kernels = two.kernels.map((k) =>
    ({ ...named(k, "second"), calls: k.calls.map(at),
    advice: k.advice.map((a) =>
    ({ ...a, lines: a.lines.map((l) => l && ([l[0] + shift, l[1]] as [number, number])) })) }));
  const schedules = [one, two]
    .flatMap((d, side) => d.schedules.map((s, n) =>
    ({ ...s, name: `${side ? "second" : "first"}: ${s.name}`, kernel: side * one.kernels.length + 2 * n })));
  return { ...one, comparison, kernels: [...one.kernels.map((k) => named(k, "first")), ...kernels],
    files: [...one.files, ...two.files], findings: [...one.findings, ...two.findings.map(at)],
    errors: [...one.errors, ...two.errors], schedules };
}
