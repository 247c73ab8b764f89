// Colours of a line, for Python, TIR, CUDA C, PTX and SASS. Strings and comments that span lines are carried as a state from line to
// line, so that any line can be drawn alone.

import type { Language } from "./wire";

/** start, end, class: k keyword, t name of the language, n number, s string, c comment, or none. */
export type Token = readonly [start: number, end: number, kind: string];

/** What is open at the start of a line: nothing, a """ or ''' string, or a block comment. */
export type Carry = 0 | 1 | 2 | 3;

const KINDS = ["c", "s", "k", "t", "n"];
const PYTHON =
  /(#.*$|^%%.*$)|([rbfuRBFU]{0,2}(?:"""|'''|"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'))|\b(def|for|in|with|as|if|else|elif|while|break|continue|return|not|and|or|is|None|True|False|lambda|import|from|class|assert|raise|try|except|finally|global|nonlocal|pass|yield|del|async|await)\b|(@[\w.]+|\bT(?:\.\w+)+)|\b(\d[\w.]*(?:e[-+]\d+)?)/g;
const CUDA =
  /(\/\/.*$|\/\*|^\s*#.*$)|("(?:[^"\\]|\\.)*")|\b(for|if|else|while|do|switch|case|break|continue|const|constexpr|static|inline|template|typename|struct|bool|char|short|int|long|unsigned|signed|float|double|void|half2?|(?:float|int|uint|half|double|uchar|ushort|bfloat)\d|uint\w*_t|int\w*_t|extern|return|alignas|asm|volatile|__\w+__|__launch_bounds__|namespace|using)\b|(\b(?:ptx|make|tl|cute|tir)_\w+|\b__\w+|\bCUtensorMap|\b(?:blockIdx|threadIdx|blockDim|gridDim)\b)|\b(\d[\w.]*(?:e[-+]\d+f?)?)/g;
const ASSEMBLY =
  /(\/\/.*$|\/\*)|("[^"]*")|(\.(?:visible|entry|param|version|target|address_size|maxntid|minnctapersm|reg|shared|func|extern|align|file|loc|section|reqntid)\b|@!?%?U?P\w*)|((?<=^\s*(?:@!?%?U?P?\w+\s+)?|^\s*\/\*[0-9a-f]+\*\/\s+(?:@!?U?P\w+\s+)?)[A-Za-z_$][\w.:]*)|(?<![\w%$.])(-?(?:0[xfd])?\d[\da-fA-Fx.]*)\b/g;
const GRAMMAR: Record<Language, RegExp> = { python: PYTHON, tir: PYTHON, cuda: CUDA, ptx: ASSEMBLY, sass: ASSEMBLY };
const ENDS = ["", '"""', "'''", "*/"];

/** Tokens of a line that starts in a state, and the state at its end. */
export function tokens(line: string, language: Language, carry: Carry = 0): { tokens: Token[]; carry: Carry } {
  const found: Token[] = [];
  let at = 0;
  let open = carry;
  const grammar = GRAMMAR[language];
  const plain = (to: number): void => void (to > at && found.push([at, to, ""]));
  while (at < line.length || open) {
    if (open) {
      const end = line.indexOf(ENDS[open], at);
      const stop = end < 0 ? line.length : end + ENDS[open].length;
      if (stop > at) found.push([at, stop, open === 3 ? "c" : "s"]);
      at = stop;
      if (end < 0) return { tokens: found, carry: open };
      open = 0;
      continue;
    }
    grammar.lastIndex = at;
    const match = grammar.exec(line);
    if (!match) break;
    plain(match.index);
    at = match.index;
    const text = match[0];
    if (text === "/*") open = 3;
    else if (/^[rbfuRBFU]{0,2}("""|''')$/.test(text)) open = text.endsWith('"""') ? 1 : 2;
    if (open) {
      const end = line.indexOf(ENDS[open], at + text.length);
      const stop = end < 0 ? line.length : end + ENDS[open].length;
      found.push([at, stop, open === 3 ? "c" : "s"]);
      at = stop;
      if (end < 0) return { tokens: found, carry: open };
      open = 0;
      continue;
    }
    if (!text) {
      at++;
      continue;
    }
    found.push([at, at + text.length, KINDS[match.slice(1).findIndex((group) => group !== undefined)] ?? ""]);
    at += text.length;
  }
  plain(line.length);
  return { tokens: found, carry: 0 };
}

const MARKS = /"""|'''|\/\*/;

/** States at the start of lines, found as far as they are asked for. */
export class Carries {
  private readonly states: Uint8Array | null;
  private known = 1;

  constructor(
    private readonly rows: readonly string[],
    private readonly language: Language,
    text: string,
  ) {
    this.states = MARKS.test(text) ? new Uint8Array(rows.length + 1) : null;
  }

  at(row: number): Carry {
    if (!this.states) return 0;
    for (; this.known <= row; this.known++) {
      const before = this.states[this.known - 1] as Carry;
      const line = this.rows[this.known - 1];
      this.states[this.known] = before || MARKS.test(line) ? tokens(line, this.language, before).carry : 0;
    }
    return this.states[row] as Carry;
  }
}
