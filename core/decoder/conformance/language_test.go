//go:build python || typescript

package conformance_test

import (
	"os"
	"testing"

	"github.com/earshot-dev/earshot/core/decoder/conformance"
	"github.com/earshot-dev/earshot/core/decoder/conformance/internal/mutants"
	"github.com/earshot-dev/earshot/core/sdk/unknown"
)

// reference runs the suite on a decoder of the reference format, with the one in Go beside it.
func reference(t *testing.T, exe string, args ...string) {
	t.Helper()
	cases, err := conformance.Load(os.DirFS("internal/mutants/testdata"))
	if err != nil {
		t.Fatal(err)
	}
	e, err := conformance.NewExec(t.Context(), exe, args...)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	s := &conformance.Suite{Subject: e, Twins: []conformance.Subject{conformance.NewLocal(mutants.Reference{})}, Cases: cases, LeavesOut: &unknown.List{}, Seed: 1}
	s.Run(t.Context(), func(r conformance.Result) {
		if r.Status == conformance.Fail {
			t.Errorf("%s %s: %s is broken: %s\n%s", r.Case, r.Check, r.Rule, r.Reason, r.Detail)
		}
	})
}
