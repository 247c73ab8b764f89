// What build.mjs puts in: minified style sheets, compressed by zlib and in base64, and the bundle of a worker.
declare module "*.css?text" {
  const packed: string;
  export default packed;
}
declare module "*?worker" {
  const text: string;
  export default text;
}
