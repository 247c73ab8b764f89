// What build.mjs turns into text: minified style sheets, and the bundle of a worker.
declare module "*.css?text" {
  const text: string;
  export default text;
}
declare module "*?worker" {
  const text: string;
  export default text;
}
