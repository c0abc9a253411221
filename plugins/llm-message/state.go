package llmmessage

import "github.com/earshot-dev/earshot/core/sdk/snapshot"

// stateVersion rises when the state's form changes, see package snapshot.
const stateVersion = 1

// Limits of the state. Beyond a limit the oldest entry is evicted.
const (
	maxSessions = 64
	maxSeen     = 4096 // events
	maxGiven    = 8192 // texts and calls of a session
	maxCalls    = 256  // open ones
	maxIDs      = 1024 // calls with an id in snapshots
	maxNameless = 64   // ended calls without one
	maxDone     = 4096 // calls that have their result, responses that were counted
	maxLanes    = 16   // memories of a session
	maxItems    = 2048 // messages of a memory
	maxGuides   = 8
	maxPhases   = 256
	maxWaits    = 64
	maxDraft    = 1 << 20 // bytes of an unfinished answer
	maxAttr     = 4 << 10 // bytes of JSON that is kept as an attribute
)

// state is the decoder's memory of earlier events.
type state struct {
	Last     string            `json:",omitempty"` // the session that an event last named
	Alias    map[string]string `json:",omitempty"` // new ids of restored sessions, and their first ids
	Sessions []*session        `json:",omitempty"` // least recently used first
	Seen     ring              `json:",omitzero"`  // events
	Heard    gaps              `json:",omitzero"`
}

// Snapshot implements decoder.Snapshotter.
func (d *stream) Snapshot() ([]byte, error) { return snapshot.Of(stateVersion, &d.state) }

// Restore implements decoder.Snapshotter.
func (d *stream) Restore(b []byte) error { return snapshot.Restore(stateVersion, b, &d.state) }
