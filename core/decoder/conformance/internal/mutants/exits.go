package mutants

import (
	"errors"
	"fmt"
	"io"

	"github.com/earshot-dev/earshot/core/decoder"
)

// Exits are animals that only a process of their own can hold: they end it, or
// never answer. end ends the process.
func Exits(name string, stderr io.Writer, end func()) (*Factory, error) {
	habit := map[string]func(*decoder.Output) error{
		"mayfly": func(*decoder.Output) error {
			fmt.Fprintln(stderr, "the mayfly's day is over")
			end()
			return errors.New("unreachable")
		},
		"tortoise": func(*decoder.Output) error { select {} },
	}[name]
	if habit == nil {
		return nil, fmt.Errorf("zoo: there is no animal %q", name)
	}
	return Mutant{Name: name, tame: onUnknown(habit)}.Factory(), nil
}
