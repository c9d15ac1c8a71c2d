// Package rooms has no code. Its test checks that the packages of this module import each other one way only.
package rooms
