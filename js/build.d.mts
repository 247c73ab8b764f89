export function sources(): string[];
export function digest(): string;
export function bundle(): Promise<string>;
