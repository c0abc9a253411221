// Package openclaw decodes the sessions of OpenClaw, which is built on Pi: see package core/sdk/pi.
package openclaw

import (
	_ "embed"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/sdk/pi"
)

//go:embed testdata/leaves-out.json
var leavesOut []byte

// New returns the factory of decoders of this format.
func New() decoder.Factory { return pi.New("openclaw", "Sessions of OpenClaw.", leavesOut) }
