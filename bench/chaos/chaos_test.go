package chaos

import (
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// bin is the directory of the executables: EARSHOT_TEST_BIN, or they are built.
var bin = os.Getenv("EARSHOT_TEST_BIN")

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "earshot-chaos-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if bin == "" {
		bin = dir
		build := exec.Command("go", "build", "-o", bin, "github.com/earshot-dev/earshot/cmd/earshot", "github.com/earshot-dev/earshot/cmd/earshot-store")
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "build: %v\n%s", err, out)
			os.Exit(1)
		}
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		_ = os.RemoveAll(dir)
		os.Exit(code)
	}))
}

// TestChaos is a short run; make chaos is the long one.
func TestChaos(t *testing.T) {
	r, err := Run(t.Context(), Options{Bin: bin, Dir: t.TempDir(), Seed: 7, Duration: 20 * time.Second, Log: t.Output()})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("\n%s", r)
	if err := r.Err(); err != nil {
		t.Error(err)
	}
}

// TestSweep kills at the first hit of each point; make chaos at all of them.
func TestSweep(t *testing.T) {
	r, err := Sweep(t.Context(), SweepOptions{Bin: bin, Dir: t.TempDir(), Every: 1000, Log: t.Output()})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("\n%s", r)
	if err := r.Err(); err != nil {
		t.Error(err)
	}
}
