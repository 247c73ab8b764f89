export function sources(): string[];
export function digest(): string;
export function bundle(): Promise<string>;
export function folded(text: string): { text: string; pieces: string[] };
