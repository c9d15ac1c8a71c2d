# The image of the command, built at a release from the binaries in the context; see .goreleaser.yaml.
FROM scratch
ARG TARGETPLATFORM
COPY $TARGETPLATFORM/redlock /redlock
ENTRYPOINT ["/redlock"]
