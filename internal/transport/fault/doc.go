// Package fault provides the errors of connections: sentinels, errors that match several sentinels, and texts without
// credentials.
package fault
