#!/usr/bin/env bash
# A study on several nodes of SLURM through Ray: one sweep on the first node, runs on all of them, one store.
#
#   sbatch --nodes=4 examples/cluster/ray.sh study.toml results/runs.db
#
#SBATCH --job-name=tstar-ray
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=16
#SBATCH --time=12:00:00
# With GPUs, add: #SBATCH --gres=gpu:8 — and pass --gpus-per-run 0.25 below for small networks.
set -euo pipefail
study=${1:?usage: ray.sh STUDY STORE}
store=${2:?usage: ray.sh STUDY STORE}
port=${PORT:-6379}

nodes=($(scontrol show hostnames "$SLURM_JOB_NODELIST"))
head=$(srun --nodes=1 --ntasks=1 --nodelist="${nodes[0]}" hostname --ip-address | awk '{print $1}')
srun --nodes=1 --ntasks=1 --overlap --nodelist="${nodes[0]}" \
  ray start --head --node-ip-address="$head" --port="$port" --num-cpus="$SLURM_CPUS_PER_TASK" --block &
sleep 15
for node in "${nodes[@]:1}"; do
  srun --nodes=1 --ntasks=1 --overlap --nodelist="$node" \
    ray start --address="$head:$port" --num-cpus="$SLURM_CPUS_PER_TASK" --block &
done
sleep 15
tstar sweep "$study" --store "$store" --engine ray --address "$head:$port"
