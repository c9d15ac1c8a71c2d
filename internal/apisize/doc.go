// Package apisize has no code. Its test keeps the exported API of each package within a budget.
package apisize
