// Package pi decodes the sessions of Pi, and of programs that are built on it: see package core/sdk/pi.
package pi

import (
	_ "embed"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/sdk/pi"
	"github.com/earshot-dev/earshot/core/sdk/unknown"
)

//go:embed testdata/leaves-out.json
var leavesOut []byte

// New returns the factory of decoders of this format.
func New() decoder.Factory {
	return pi.Format{Name: "pi", Summary: "Sessions of Pi and OpenClaw: files, and pi --mode json.", Rest: unknown.NewKeeper(leavesOut)}.Factory()
}
