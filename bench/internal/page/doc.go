// Package page draws what was measured as one page of HTML that loads nothing: a sentence, a few large numbers,
// pictures, the targets, and the tables folded. It knows nothing of locks.
package page
