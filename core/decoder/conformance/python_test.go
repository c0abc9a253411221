//go:build python

package conformance_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/earshot-dev/earshot/core/decoder/conformance"
)

// python returns a Python that has gRPC and imports the generated messages and the SDK.
func python(t *testing.T) string {
	t.Helper()
	sdk, err := filepath.Abs("../../sdk/python")
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("PYTHONPATH", sdk)
	t.Setenv("PYTHONDONTWRITEBYTECODE", "1")
	for _, p := range []string{"python3", "/usr/bin/python3"} {
		if exec.CommandContext(t.Context(), p, "-c", "import grpc, google.protobuf").Run() == nil {
			return p
		}
	}
	t.Fatal("this test runs a decoder that is written in Python, and no Python here has gRPC; on Debian and Ubuntu type: apt-get install python3-grpcio python3-protobuf")
	return ""
}

// A decoder in another language, written from PROTOCOL.md alone or on the SDK of its language,
// passes the suite and has the output of the Go decoder of its format.
func TestPython(t *testing.T) {
	for _, program := range []string{"decoder.py", "on_sdk.py"} {
		t.Run(program, func(t *testing.T) { reference(t, python(t), "testdata/python/"+program) })
	}
}

// Without the services that the protocol calls optional everything works, but the
// process has to be killed at the end.
func TestPythonWithTheDecoderServiceAlone(t *testing.T) {
	t.Setenv("REFERENCE_BARE", "1")
	cases, err := conformance.Load(os.DirFS("internal/mutants/testdata"))
	if err != nil {
		t.Fatal(err)
	}
	e, err := conformance.NewExec(t.Context(), python(t), "testdata/python/decoder.py")
	if err != nil {
		t.Fatal(err)
	}
	s := &conformance.Suite{Subject: e, Cases: cases, Checks: []string{"C1", "C5"}}
	s.Run(t.Context(), func(r conformance.Result) {
		if r.Status != conformance.Pass {
			t.Errorf("%s %s: %s %s", r.Case, r.Check, r.Status, r.Reason)
		}
	})
	start := time.Now()
	e.Close()
	if d := time.Since(start); d < time.Second || d > time.Minute {
		t.Errorf("it was gone after %s; PROTOCOL.md says that the host waits two seconds", d)
	}
}

// The decoder refuses an invalid environment with a message.
func TestPythonRefusals(t *testing.T) {
	for env, want := range map[string]string{
		"EARSHOT_DECODER=other": "earshot starts it",
		"EARSHOT_DECODER=a77f6c1e5f0b4b3d9c1f PLUGIN_CLIENT_CERT=x": "does not speak TLS",
	} {
		for _, program := range []string{"decoder.py", "on_sdk.py"} {
			cmd := exec.CommandContext(t.Context(), python(t), "testdata/python/"+program)
			cmd.Env = append(os.Environ(), strings.Fields(env)...)
			out, err := cmd.CombinedOutput()
			if err == nil || !strings.Contains(string(out), want) {
				t.Errorf("%s with %s: %v %s", program, env, err, out)
			}
		}
	}
}
