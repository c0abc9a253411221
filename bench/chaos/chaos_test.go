package chaos

import (
	"os"
	"os/exec"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestChaos is a short run; make chaos is the long one.
func TestChaos(t *testing.T) {
	bin := t.TempDir()
	build := exec.Command("go", "build", "-o", bin, "github.com/earshot-dev/earshot/cmd/earshot", "github.com/earshot-dev/earshot/cmd/earshot-store")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	r, err := Run(t.Context(), Options{Bin: bin, Dir: t.TempDir(), Seed: 7, Duration: 20 * time.Second, Log: t.Output()})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("\n%s", r)
	if err := r.Err(); err != nil {
		t.Error(err)
	}
}
