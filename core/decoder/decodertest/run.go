// Package decodertest has the tests of a decoder, in one line each:
//
//	func TestDecoder(t *testing.T)      { decodertest.Run(t, New()) }
//	func FuzzDecode(f *testing.F)       { decodertest.Fuzz(f, New()) }
//	func BenchmarkDecode(b *testing.B)  { decodertest.Bench(b, New()) }
//
// The cases are in testdata; package conformance describes the files of a case and the checks.
// go test -update rewrites the want.jsonl of each case and then fails, so that each change is
// read before it is kept. It also writes testdata/revision.json, which ties the goldens to the
// decoder's Revision: when the same frames have other messages, Revision must rise.
package decodertest

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/decoder/conformance"
	"github.com/earshot-dev/earshot/core/internal/wire"
	"github.com/earshot-dev/earshot/core/sdk"
	"github.com/earshot-dev/earshot/core/sdk/unknown"
)

const dir = "testdata"

var (
	update = flag.Bool("update", false, "rewrite the want.jsonl of every case, then fail")
	checks = flag.String("conformance.checks", "", "the checks to make, separated by commas (C5,C9); all when empty")
	seed   = flag.Uint64("conformance.seed", 1, "seed of the conformance suite's random choices")
)

// Run makes every check of the suite, as a subtest each, with every case of
// ./testdata: on the decoder in this process, and again behind gRPC. Their
// output is compared with that of the decoder as a process of its own, for which the test
// binary is started again as go-plugin starts any decoder: frames reach it over a socket of its own
// (core/internal/plane).
//
// With -short and under the race detector, the checks that repeat a case at many positions take fewer
// of them, and behind gRPC the cases run once, for the comparison; `make conformance` takes all.
//
// It must be called by a test directly: the process runs that test only.
func Run(t *testing.T, f decoder.Factory) {
	t.Helper()
	if h := wire.Handshake(); os.Getenv(h.MagicCookieKey) == h.MagicCookieValue {
		sdk.Serve(f)
		os.Exit(0)
	}
	cases, err := conformance.Load(os.DirFS(dir))
	if err != nil {
		t.Fatal(err)
	}
	leaves, err := conformance.LeavesOut(os.DirFS(dir))
	if err != nil {
		t.Fatal(err)
	}
	named(t, leaves)
	ctx := t.Context()
	local := conformance.NewLocal(f)
	if *update {
		rewrite(ctx, t, local, cases)
		if err := checkRevision(dir, f.Info().Revision, true); err != nil {
			t.Error(err)
		}
		return
	}
	if err := checkRevision(dir, f.Info().Revision, false); err != nil {
		t.Error(err)
	}
	remote, err := conformance.NewGRPC(ctx, f)
	if err != nil {
		t.Fatal(err)
	}
	defer remote.Close()
	process, err := itself(ctx, t)
	if err != nil {
		t.Fatal(err)
	}
	defer process.Close()
	only := conformance.CheckNames()
	if *checks != "" {
		only = strings.Split(*checks, ",")
	}
	sparse := raceDetector || testing.Short()
	run(ctx, t, &conformance.Suite{Subject: local, Twins: []conformance.Subject{remote, process}, Cases: cases, LeavesOut: leaves, Seed: *seed, Sparse: sparse, Checks: only})
	// C13 (memory) and C14 (members that are left out) are the same behind gRPC.
	only = slices.DeleteFunc(only, func(c string) bool { return c == "C13" || c == "C14" })
	if len(only) > 0 && !sparse {
		run(ctx, t, &conformance.Suite{Subject: remote, Cases: cases, Seed: *seed, Checks: only})
	}
}

// named checks that the decoder's README names the paths that the decoder leaves out.
func named(t *testing.T, leaves *unknown.List) {
	if leaves == nil || len(leaves.Entries) == 0 {
		return
	}
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Error(err)
	}
	for _, e := range leaves.Entries {
		if !strings.Contains(string(readme), "`"+e.Path+"`") {
			t.Errorf("README.md does not name `%s`, which %s/leaves-out.json leaves out", e.Path, dir)
		}
	}
}

// run reports the results of a suite as subtests.
func run(ctx context.Context, t *testing.T, s *conformance.Suite) {
	t.Run(strings.ReplaceAll(s.Subject.Describe().Where, " ", "_"), func(t *testing.T) {
		s.Run(ctx, func(r conformance.Result) {
			name := r.Check + "_" + strings.ReplaceAll(r.Title, " ", "_")
			if r.Case != "" {
				name = r.Case + "/" + name
			}
			t.Run(name, func(t *testing.T) {
				switch r.Status {
				case conformance.Skip:
					t.Skip(r.Reason)
				case conformance.Fail:
					t.Errorf("%s is broken: %s (seed %d)\n%s", r.Rule, r.Reason, s.Seed, r.Detail)
				}
			})
		})
	})
}

// itself starts this test binary as a decoder process.
func itself(ctx context.Context, t *testing.T) (*conformance.Exec, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	var pattern []string
	for part := range strings.SplitSeq(t.Name(), "/") {
		pattern = append(pattern, "^"+regexp.QuoteMeta(part)+"$")
	}
	return conformance.NewExec(ctx, exe, "-test.run="+strings.Join(pattern, "/"), "-test.timeout=0")
}

func rewrite(ctx context.Context, t *testing.T, s conformance.Subject, cases []conformance.Case) {
	for _, c := range cases {
		out, err := conformance.Golden(ctx, s, c)
		if err != nil {
			t.Errorf("case %s is not rewritten: %v", c.Name, err)
			continue
		}
		if err := os.WriteFile(filepath.Join(dir, c.Name, "want.jsonl"), out, 0o644); err != nil {
			t.Error(err)
		}
	}
	t.Errorf("want.jsonl of %d cases rewritten: read the difference, then run without -update", len(cases))
}
