// What build.mjs puts in: minified style sheets with their recurring pieces folded, and the bundle of a worker.
declare module "*.css?text" {
  export interface Folded {
    readonly text: string;
    /** A sign and what it stands for; the later ones stand in the earlier ones too. */
    readonly pieces: readonly string[];
  }
  const sheet: Folded;
  export default sheet;
}
declare module "*?worker" {
  const text: string;
  export default text;
}
