// Package page renders results as one self-contained HTML page: a sentence, a few large numbers, plots, the targets,
// and collapsed tables. It does not depend on locks.
package page
