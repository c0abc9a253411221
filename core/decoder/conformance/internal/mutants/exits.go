package mutants

import (
	"errors"
	"fmt"
	"io"

	"github.com/earshot-dev/earshot/core/decoder"
)

// Exits returns a mutant that needs a process of its own: it ends the process, or
// never answers. end ends the process.
func Exits(name string, stderr io.Writer, end func()) (*Factory, error) {
	fault := map[string]func(*decoder.Output) error{
		"exits": func(*decoder.Output) error {
			fmt.Fprintln(stderr, "exits, as it must")
			end()
			return errors.New("unreachable")
		},
		"never-answers": func(*decoder.Output) error { select {} },
	}[name]
	if fault == nil {
		return nil, fmt.Errorf("mutants: there is no mutant %q", name)
	}
	return Mutant{Name: name, mutate: onUnknown(fault)}.Factory(), nil
}
