/** What people do to a session and its queue; part of `JournalEvent`. */
export type SessionEvent =
  | { readonly kind: 'input.edited'; readonly layer: 'driver'; readonly input: string; readonly by: string }
  /** Nobody else may change it, and no turn takes it, until then (ISO time). */
  | {
      readonly kind: 'input.locked';
      readonly layer: 'driver';
      readonly input: string;
      readonly by: string;
      readonly until: string;
    }
  | { readonly kind: 'input.unlocked'; readonly layer: 'driver'; readonly input: string; readonly by: string }
  | {
      /** The first event of a fork: where it was taken, and the head it begins with. */
      readonly kind: 'session.forked';
      readonly layer: 'driver';
      readonly source: string;
      readonly at: string;
      readonly head: string;
      /** Calls behind that point that may have changed the world; the model is told of them. */
      readonly effects: number;
      readonly by: string;
    }
  | {
      /** The session has another head; nothing is deleted, and the world is not rewound. */
      readonly kind: 'session.rewound';
      readonly layer: 'driver';
      readonly from: string;
      readonly to: string;
      readonly head: string;
      readonly effects: number;
      readonly by: string;
      readonly why: string | null;
    }
  | { readonly kind: 'session.renamed'; readonly layer: 'driver'; readonly by: string }
  | {
      readonly kind: 'session.archived';
      readonly layer: 'driver';
      readonly archived: boolean;
      readonly by: string;
      readonly why: string | null;
    }
  | {
      /** Calls at the end of the chain had no result when the session was loaded; now each has one. */
      readonly kind: 'chain.repaired';
      readonly layer: 'driver';
      readonly from: string;
      readonly head: string;
      readonly results: number;
    };
