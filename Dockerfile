# The program and CA certificates, which the base has, and nothing else. It is built of the programs
# of a release; for a build of your own, put one at linux/ARCH/kubectl-mutate.
FROM gcr.io/distroless/static-debian12:nonroot
ARG TARGETPLATFORM
COPY ${TARGETPLATFORM}/kubectl-mutate /kubectl-mutate
ENTRYPOINT ["/kubectl-mutate"]
