// Package page formats results as one self-contained HTML page with a sentence, a few large numbers, plots, the
// targets, and collapsed tables. It contains nothing that is specific to locks.
package page
