// Package spread says to which of several groups of masters a name belongs, and joins the Lockers of all groups.
//
// It is rendezvous hashing: each group has a number for each name, and the name belongs to the group with the largest.
// Nothing is kept, every program computes the same, and a fleet that gets one more group moves to it only the names
// that now belong there.
package spread
