// Command write writes the dashboards and the alert rules to their checked-in
// files. go generate runs it in the folder dashboards.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/earshot-dev/earshot/dashboards/internal/boards"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	files, err := boards.Files()
	if err != nil {
		return err
	}
	for name, content := range files {
		path := filepath.Join("..", name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, content, 0o644); err != nil {
			return err
		}
	}
	return nil
}
