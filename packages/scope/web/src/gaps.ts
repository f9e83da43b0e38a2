// Busy time of something that instructions take in any order, as neuroncore.timeline's Gaps.

/** How many of the sorted numbers are at most `value`. */
function bisectRight(sorted: readonly number[], value: number): number {
  let low = 0, high = sorted.length;
  while (low < high) { const mid = (low + high) >> 1; if (sorted[mid]! <= value) low = mid + 1; else high = mid; }
  return low;
}

/** Sorted, disjoint busy intervals in ticks. */
export class Gaps {
  private readonly starts: number[] = [];
  private readonly ends: number[] = [];
  busy = 0;
  get isEmpty(): boolean { return !this.ends.length; }
  /** When the last interval ends. */
  get end(): number { return this.ends.at(-1) ?? 0; }

  /** Takes `length` ticks in one piece, as early as possible from `ready` on; its start. */
  reserve(ready: number, length: number): number {
    const { starts, ends } = this;
    this.busy += length;
    if (!ends.length || ready >= ends.at(-1)!) { this.append(ready, ready + length); return ready; }
    if (!length) return ready;
    let begin = ready;
    for (let at = bisectRight(ends, ready); at < starts.length; at++) {
      if (starts[at]! - begin >= length) { this.insert(at, begin, begin + length); return begin; }
      begin = Math.max(begin, ends[at]!);
    }
    this.append(begin, begin + length);
    return begin;
  }

  /** Takes `length` ticks from `start` on, behind everything that is taken. */
  follow(start: number, length: number): void { this.busy += length; this.append(start, start + length); }

  /** Takes `length` free ticks between what is taken: where that ended before (-1: nowhere), began behind. */
  insertAt(start: number, length: number): [before: number, behind: number] {
    const at = bisectRight(this.ends, start),
      found: [number, number] = [at ? this.ends[at - 1]! : -1, this.starts[at]!];
    this.busy += length;
    this.insert(at, start, start + length);
    return found;
  }

  /** Where `reserve` would begin; nothing is taken. */
  room(ready: number, length: number): number {
    const { starts, ends } = this;
    if (!ends.length || ready >= ends.at(-1)!) return ready;
    for (let at = bisectRight(ends, ready); at < starts.length && starts[at]! - ready < length; at++) ready =
      Math.max(ready, ends[at]!);
    return ready;
  }

  /** Takes `length` ticks of idle time from `ready` on, in pieces; the end of the last. */
  fill(ready: number, length: number): number {
    const { starts, ends } = this;
    this.busy += length;
    if (!ends.length || ready >= ends.at(-1)!) { this.append(ready, ready + length); return ready + length; }
    if (!length) return ready;
    const first = bisectRight(ends, ready);
    let at = first, begin = ready;
    for (; at < starts.length; at++) {
      const free = starts[at]! - begin;
      if (free >= length) break;
      if (free > 0) length -= free;
      begin = ends[at]!;
    }
    const end = begin + length, low = at === first ? ready : Math.min(starts[first]!, ready);
    starts.splice(first, at - first, low);
    ends.splice(first, at - first, end);
    if (first + 1 < starts.length && starts[first + 1]! <= end) {
      ends[first] = Math.max(end, ends[first + 1]!);
      starts.splice(first + 1, 1); ends.splice(first + 1, 1);
    }
    if (first && ends[first - 1] === starts[first]) {
      starts[first] = starts[first - 1]!;
      starts.splice(first - 1, 1); ends.splice(first - 1, 1);
    }
    return end;
  }

  private append(start: number, end: number): void {
    if (end === start) return;
    if (this.ends.at(-1) === start) this.ends[this.ends.length - 1] = end;
    else { this.starts.push(start); this.ends.push(end); }
  }
  private insert(at: number, start: number, end: number): void {
    const { starts, ends } = this, left = at > 0 && ends[at - 1] === start, right = starts[at] === end;
    if (left && right) { ends[at - 1] = ends[at]!; starts.splice(at, 1); ends.splice(at, 1); }
    else if (left) ends[at - 1] = end;
    else if (right) starts[at] = start;
    else { starts.splice(at, 0, start); ends.splice(at, 0, end); }
  }
}

/** From when on, `ready` at the earliest, all of them are free for `length` ticks. */
export function commonRoom(shared: readonly Gaps[], ready: number, length: number): number {
  for (;;) {
    const start = shared.reduce((time, gaps) => gaps.room(time, length), ready);
    if (start === ready) return start;
    ready = start;
  }
}
