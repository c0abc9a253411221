// Package msg is the one vocabulary of Earshot: the normalized Message that
// every decoder produces, the Span that is assembled from messages, the Problem
// for input that could not be decoded, and the identities of all three.
//
// It imports the standard library only and every arrow of the project points
// to it.
//
// # Identity
//
// An id is a hash of facts of the protocol: (tenant, format, session, key). It
// never contains a clock, a random number, the position of a frame, or the name
// of the source, so that a replay, a re-chunking and a reload of the same
// conversation through another source arrive at the same rows. Two deployments
// whose session ids collide are kept apart by tenant. Formats without an id for a
// conversation, or whose servers repeat ids (decoder.Info.LocalIDs), are the
// exception: there the source, and on a collision the exchange, is part of the id.
//
// # Time
//
// Times are Unix nanoseconds in UTC; zero means that the protocol has none.
// The precision is kept beside the time (Precision): AGNO counts
// whole seconds, and two messages in one second are then ordered by Seq alone.
package msg
