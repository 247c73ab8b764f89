export function sources(): string[];
export function digest(): string;
export function bundle(): Promise<string>;
export function packed(text: string): string;
