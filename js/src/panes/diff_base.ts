// With what a stage is compared.

import { before } from "../lineage";
import { LAST_RUN, type Shell } from "../state";
import type { Stage } from "../trace";

/** The stage to compare with; null for the last run of the cell. */
export function baseOf(shell: Shell): Stage | null {
  const { base, kernel, stage } = shell.state;
  if (base === LAST_RUN && shell.trace.previous) return null;
  const named = base === null ? null : kernel.stages.find((one) => one.name === base && one.listing);
  if (named) return named;
  const earlier = before(kernel.stages, stage);
  if (earlier) return earlier;
  // the first stage of another language: against itself in the last run, or what it was made from
  if (base === null && shell.trace.previous?.kernels?.[kernel.name]?.stages?.[stage.name] !== undefined) return null;
  const at = kernel.stages.indexOf(stage);
  return kernel.stages.slice(0, Math.max(at, 1)).findLast((one) => one.listing && one.listing !== stage.listing) ?? kernel.stages[0];
}
