package main

import (
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/earshot-dev/earshot/core/app"
)

// version is the tag that make build found. A binary of go install has the module's
// version instead, any other build has "dev".
var version = ""

func buildVersion() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "dev"
}

func newVersion() *cobra.Command {
	var output string
	c := &cobra.Command{
		Use:     "version",
		Short:   "Print the version, the commit, and the engine of the embedded store",
		Example: "  earshot version -o json",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			v := struct {
				Version  string `json:"version"`
				Revision string `json:"revision,omitempty"`
				Go       string `json:"go"`
				Platform string `json:"platform"`
				Engine   string `json:"engine,omitempty"` // npm package and version; empty without earshot-store
			}{buildVersion(), revision(), runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH, app.Engine(c.Context())}
			if output == "json" {
				return json.NewEncoder(c.OutOrStdout()).Encode(v)
			}
			engine := "no embedded store"
			if v.Engine != "" {
				engine = "engine " + v.Engine
			}
			_, err := fmt.Fprintf(c.OutOrStdout(), "%s, %s\n", versionLine(), engine)
			return err
		},
	}
	outputFlag(c, &output)
	return c
}

// versionLine is the output of earshot --version.
func versionLine() string {
	return fmt.Sprintf("earshot %s (%s, %s/%s)", strings.TrimSpace(buildVersion()+" "+revision()), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

func revision() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return s.Value[:min(len(s.Value), 12)]
		}
	}
	return ""
}
