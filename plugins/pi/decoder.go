// Package pi decodes the sessions of Pi, and of programs that are built on it: see package core/sdk/pi.
package pi

import (
	_ "embed"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/sdk/pi"
)

//go:embed testdata/leaves-out.json
var leavesOut []byte

// New returns the factory of decoders of this format.
func New() decoder.Factory {
	return pi.New("pi", "Sessions of Pi and OpenClaw: files, and pi --mode json.", leavesOut)
}
