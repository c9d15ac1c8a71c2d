package main

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

func versionCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "show the version of this program",
		Long:    `Shows the version of this program, the revision that it was built from, and the version of Go.`,
		Example: `  redlock version --json`,
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			version, revision := buildVersion()
			a.result(map[string]string{
				"version": version, "revision": revision, "go": runtime.Version(), "system": runtime.GOOS + "/" + runtime.GOARCH,
			}, versionText())
			return nil
		},
	}
}

// versionText is the output of "redlock version" and "redlock --version".
func versionText() string {
	version, revision := buildVersion()
	return fmt.Sprintf("redlock %s, revision %s, %s %s/%s\n", version, cmp.Or(revision, "unknown"), runtime.Version(),
		runtime.GOOS, runtime.GOARCH)
}

// buildVersion returns the version information that the Go command has recorded in this build.
func buildVersion() (version, revision string) {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown", ""
	}
	dirty := false
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			revision = s.Value[:min(12, len(s.Value))]
		case "vcs.modified":
			dirty = s.Value == "true"
		}
	}
	if dirty {
		revision += " with changes"
	}
	return info.Main.Version, revision
}
