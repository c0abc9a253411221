// Command vet is go vet without facts of other modules, which tell that a function there formats as fmt.Printf does or
// never returns: to know them takes longer than to vet this module. It is for go vet -vettool, and runs the vet
// that the environment variable VET names (go tool -n vet).
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"github.com/earshot-dev/earshot/core/internal/tools/own"
)

func main() {
	args := os.Args[1:]
	if len(args) == 1 && args[0] == "-V=full" {
		out, err := exec.Command(os.Getenv("VET"), args...).Output()
		fail(err)
		fmt.Println(strings.TrimSpace(string(out)) + "-own-module") // go vet caches by this line
		return
	}
	if name := args[len(args)-1]; strings.HasSuffix(name, ".cfg") {
		b, err := os.ReadFile(name)
		fail(err)
		var unit struct {
			ImportPath, VetxOutput string
			VetxOnly               bool // as a dependency, for its facts
		}
		fail(json.Unmarshal(b, &unit))
		if unit.VetxOnly && own.External(unit.ImportPath) {
			fail(os.WriteFile(unit.VetxOutput, nil, 0o600))
			return
		}
	}
	c := exec.Command(os.Getenv("VET"), args...)
	c.Stdin, c.Stdout, c.Stderr = os.Stdin, os.Stdout, os.Stderr
	fail(c.Run())
}

func fail(err error) {
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		os.Exit(exit.ExitCode())
	case err != nil:
		fmt.Fprintln(os.Stderr, "vet:", err)
		os.Exit(1)
	}
}
