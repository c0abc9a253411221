// Command servemutant serves one animal of the zoo as a decoder process: the one
// named by its argument or by ZOO_ANIMAL, or the good parrot.
//
//	go build -o servemutant ./core/decoder/conformance/internal/servemutant
//	ZOO_ANIMAL=goldfish earshot plugin test --exec ./servemutant --testdata core/decoder/conformance/internal/mutants/testdata
package main

import (
	"fmt"
	"os"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/decoder/conformance/internal/mutants"
	"github.com/earshot-dev/earshot/core/sdk"
)

func main() {
	name := os.Getenv("ZOO_ANIMAL")
	if len(os.Args) > 1 {
		name = os.Args[1]
	}
	var f decoder.Factory = mutants.Reference{}
	if name != "" && name != "parrot" {
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
