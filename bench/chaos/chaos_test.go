package chaos

import (
	"os"
	"os/exec"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// build makes the executables.
func build(t *testing.T) string {
	t.Helper()
	bin := t.TempDir()
	c := exec.Command("go", "build", "-o", bin, "github.com/earshot-dev/earshot/cmd/earshot", "github.com/earshot-dev/earshot/cmd/earshot-store")
	c.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return bin
}

// TestChaos is a short run; make chaos is the long one.
func TestChaos(t *testing.T) {
	r, err := Run(t.Context(), Options{Bin: build(t), Dir: t.TempDir(), Seed: 7, Duration: 20 * time.Second, Log: t.Output()})
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
	r, err := Sweep(t.Context(), SweepOptions{Bin: build(t), Dir: t.TempDir(), Every: 1000, Log: t.Output()})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("\n%s", r)
	if err := r.Err(); err != nil {
		t.Error(err)
	}
}
