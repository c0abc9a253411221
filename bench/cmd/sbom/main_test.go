package main

import (
	"bytes"
	"os"
	"testing"
)

// TestNoticeIsAsWritten compares NOTICE with the modules of the build.
func TestNoticeIsAsWritten(t *testing.T) {
	t.Chdir("../../..")
	list, err := components()
	if err != nil {
		t.Fatal(err)
	}
	want, err := notice(list)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile("NOTICE"); err != nil || !bytes.Equal(got, want) {
		t.Errorf("NOTICE differs from the licences of the modules (%v): run make sbom", err)
	}
	if _, err := sbom(list); err != nil {
		t.Error(err)
	}
}
