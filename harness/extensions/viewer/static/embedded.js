// In the place of api.js on a page that has no server: the episode stands in the page itself.

export class Failure extends Error {}

/** The episode, with `up`, the page above this one, and `pages`, the page of each other episode that is shown. */
export const data = JSON.parse(document.getElementById("episode-data").textContent);

export const get = async () => data;
export const watch = () => () => {};
export const whatIf = async () => null;

const gone = async () => {
  throw new Failure("This page holds the beginning of long texts only. `harness view` on the run shows all of it.");
};
export const text = gone;
export const inner = async () => {
  throw new Failure("This page does not hold inner calls. `harness view` on the run shows them.");
};
export const replies = gone;
export const playOn = gone;
