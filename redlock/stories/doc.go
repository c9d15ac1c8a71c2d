// Package stories has the hazards of the protocol as stories.
package stories
