package letta

import "github.com/earshot-dev/earshot/core/sdk/snapshot"

// stateVersion rises when the state's form changes, see package snapshot.
const stateVersion = 1

// Snapshot implements decoder.Snapshotter.
func (d *stream) Snapshot() ([]byte, error) { return snapshot.Of(stateVersion, &d.state) }

// Restore implements decoder.Snapshotter.
func (d *stream) Restore(b []byte) error { return snapshot.Restore(stateVersion, b, &d.state) }
