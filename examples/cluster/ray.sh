#!/usr/bin/env bash
# A study on several nodes of SLURM through Ray: one sweep on the first node, runs on all of them, one store.
#
#   sbatch --nodes=4 examples/cluster/ray.sh study.toml results/runs.db
#   sbatch --nodes=4 --gres=gpu:8 examples/cluster/ray.sh study.toml results/runs.db --device cuda --gpus-per-run 0.25
#
# What follows the store goes to tstar sweep.
#SBATCH --job-name=tstar-ray
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=16
#SBATCH --time=12:00:00
set -euo pipefail
study=${1:?usage: ray.sh STUDY STORE [OPTIONS]}
store=${2:?usage: ray.sh STUDY STORE [OPTIONS]}
port=${PORT:-6379}
trap 'kill $(jobs -p) 2>/dev/null || true; wait' EXIT

mapfile -t nodes < <(scontrol show hostnames "$SLURM_JOB_NODELIST")
head=$(srun --nodes=1 --ntasks=1 --nodelist="${nodes[0]}" hostname --ip-address | awk '{print $1}')
srun --nodes=1 --ntasks=1 --overlap --nodelist="${nodes[0]}" \
  ray start --head --node-ip-address="$head" --port="$port" --num-cpus="$SLURM_CPUS_PER_TASK" \
  --include-dashboard=false --block &
until ray health-check --address "$head:$port" >/dev/null 2>&1; do
  kill -0 $! # ends the script if the head has ended
  sleep 2
done
for node in "${nodes[@]:1}"; do
  srun --nodes=1 --ntasks=1 --overlap --nodelist="$node" \
    ray start --address="$head:$port" --num-cpus="$SLURM_CPUS_PER_TASK" --block &
done
# The sweep counts the nodes once, when it starts: wait for all of them.
timeout "${PATIENCE:-300}" python - "$head:$port" "${#nodes[@]}" <<'PYTHON'
import sys, time
import ray

ray.init(address=sys.argv[1], log_to_driver=False, logging_level="error")
while sum(node["Alive"] for node in ray.nodes()) < int(sys.argv[2]):
    time.sleep(1)
PYTHON
tstar sweep "$study" --store "$store" --engine ray --address "$head:$port" --checkpoint "${CHECKPOINT:-10}" "${@:3}"
