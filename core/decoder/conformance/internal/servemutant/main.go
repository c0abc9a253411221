// Command servemutant serves one mutant as a decoder process: the one named by its
// argument or by the environment variable MUTANT, or the reference decoder.
//
//	go build -o servemutant ./core/decoder/conformance/internal/servemutant
//	MUTANT=snapshot-drops-open earshot plugin test --exec ./servemutant --testdata core/decoder/conformance/internal/mutants/testdata
package main

import (
	"fmt"
	"os"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/decoder/conformance/internal/mutants"
	"github.com/earshot-dev/earshot/core/sdk"
)

func main() {
	name := os.Getenv("MUTANT")
	if len(os.Args) > 1 {
		name = os.Args[1]
	}
	var f decoder.Factory = mutants.Reference{}
	if name != "" && name != "reference" {
		var err error
		if f, err = find(name); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
	}
	sdk.Serve(f)
}

func find(name string) (decoder.Factory, error) {
	a, err := mutants.Named(name)
	if err != nil {
		return mutants.Exits(name, os.Stderr, func() { os.Exit(3) })
	}
	return a.Factory(), nil
}
